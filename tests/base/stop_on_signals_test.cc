// SPDX-License-Identifier: Apache-2.0
#include "base/stop_on_signals.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace abl {
namespace {

TEST(WithoutSigpipe, AWriteToAPeerThatHasGoneFailsAndEndsNoProgram) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  close(ends[1]);
  {
    const WithoutSigpipe quiet;
    EXPECT_EQ(write(ends[0], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }  // what was pending is gone: otherwise this program would end here
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGPIPE), 0) << "as it was before";
  EXPECT_EXIT(write(ends[0], "x", 1), testing::KilledBySignal(SIGPIPE), "") << "and so it is outside";
  close(ends[0]);
}

}  // namespace
}  // namespace abl
