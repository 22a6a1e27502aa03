// SPDX-License-Identifier: Apache-2.0
#include "cli/stop_signals.h"

#include <cerrno>

namespace abl::cli {

StopSignals::StopSignals() {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, number);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // who reads the output of a daemon may go
}

bool StopSignals::wait(Milliseconds timeout) {
  const timespec time{.tv_sec = timeout.count() / 1000, .tv_nsec = timeout.count() % 1000 * 1'000'000};
  return sigtimedwait(&signals_, nullptr, &time) > 0;
}

void StopSignals::wait() {
  while (sigwaitinfo(&signals_, nullptr) < 0 && errno == EINTR) {
  }
}

}  // namespace abl::cli
