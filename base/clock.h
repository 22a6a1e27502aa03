// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <chrono>

namespace abl {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;
using Milliseconds = std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

/// One moment by both clocks: `wall` is for people, `steady` for deadlines.
struct Moment {
  Moment(Time both) : wall{both}, steady{both} {}
  Moment(Time wall, Time steady) : wall{wall}, steady{steady} {}
  Time wall, steady;
};

/// Where the time comes from; tests pass their own.
class Clock {
 public:
  virtual ~Clock() = default;
  /// What a clock on the wall shows: for people. Somebody may set it.
  virtual Time now() const = 0;
  /// For deadlines: nobody sets it, and it goes on while the machine sleeps. Values of two programs cannot be
  /// compared.
  virtual Time steady() const { return now(); }
  Moment moment() const { return {now(), steady()}; }
};

class SystemClock final : public Clock {
 public:
  Time now() const override { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }
  Time steady() const override { return started_ + (since_boot() - booted_); }

 private:
  static Milliseconds since_boot() {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return std::chrono::floor<Milliseconds>(std::chrono::seconds{time.tv_sec} +
                                            std::chrono::nanoseconds{time.tv_nsec});
  }
  Time started_ = now();  ///< so that a stored deadline can be read as a date
  Milliseconds booted_ = since_boot();
};

}  // namespace abl
