// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace abl::storage {

/// How long to wait for readers of older states when the log is to be made empty: everybody who would write
/// or begin to read waits meanwhile. A few short waits, between which the others go on, are enough for
/// readers who merely overlap; then one long one; and where that was in vain too, somebody reads for ever, so
/// that the next attempt comes later each time.
class LogPatience {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit LogPatience(Milliseconds longest) : longest_{longest} {}

  /// The wait to make at `now`; nothing while it is too early.
  std::optional<Milliseconds> at(TimePoint now) const {
    if (now < next_) return std::nullopt;
    return tries_ < kShortTries ? std::min(longest_, kShort) : longest_;
  }
  /// The wait was enough.
  void succeeded() { *this = LogPatience{longest_}; }
  /// It was not. Returns: whether that was the long one.
  bool failed(TimePoint now) {
    if (++tries_ <= kShortTries) return false;
    tries_ = 0;
    pause_ = pause_ == Milliseconds{} ? 10 * longest_ : std::min<Milliseconds>(2 * pause_, kLongestPause);
    next_ = now + pause_;
    return true;
  }

 private:
  static constexpr int kShortTries = 10;
  static constexpr Milliseconds kShort{100};
  static constexpr std::chrono::minutes kLongestPause{10};

  Milliseconds longest_;
  int tries_ = 0;
  Milliseconds pause_{};
  TimePoint next_{};
};

}  // namespace abl::storage
