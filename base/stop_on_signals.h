// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace abl {

/// From now on SIGTERM, SIGINT and, unless it is ignored as under nohup, SIGHUP raise what is returned,
/// instead of ending the program.
const std::atomic<bool>& stop_on_signals();
/// Raises it as those signals do.
/// Thread: any.
void ask_to_stop();

/// While it lives, what this thread writes to a peer that has gone fails with EPIPE and ends no program: for
/// libraries that write to sockets without MSG_NOSIGNAL, in programs that a closed pipe of their output shall
/// end.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pending_before_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &mask_before_);
  }
  ~WithoutSigpipe() {
    constexpr timespec kAtOnce{};
    if (!pending_before_ && is_pending()) sigtimedwait(&sigpipe_, nullptr, &kAtOnce);
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
  }
  sigset_t sigpipe_{}, mask_before_{};
  bool pending_before_ = false;
};

}  // namespace abl
