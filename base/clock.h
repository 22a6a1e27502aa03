// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace abl {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;
using Milliseconds = std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

/// Where the time comes from; tests pass their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override { return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now()); }
};

}  // namespace abl
