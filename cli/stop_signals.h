// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include "base/clock.h"

namespace abl::cli {

/// Ctrl-C, SIGTERM and SIGHUP as something to wait for instead of an interruption. Create it before any
/// thread is started: they inherit that the signals are blocked.
class StopSignals {
 public:
  StopSignals();
  /// Whether one came within `timeout`.
  bool wait(Milliseconds timeout);
  /// Waits until one comes.
  void wait();

 private:
  sigset_t signals_{};
};

}  // namespace abl::cli
