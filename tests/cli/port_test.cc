// SPDX-License-Identifier: Apache-2.0
#include "cli/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cli/listener.h"

namespace abl::cli {
namespace {

TEST(Port, OneThatIsAskedForAndInUseIsAnErrorThatNamesIt) {
  const Listener listener;
  try {
    choose_port(listener.port());
    FAIL() << "the port is in use";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("port " + std::to_string(listener.port()) + " on 127.0.0.1 is in use"));
  }
}

TEST(Port, AFreeOneIsFoundWhereNoneIsAskedFor) { EXPECT_NE(choose_port(std::nullopt), 0); }

}  // namespace
}  // namespace abl::cli
