// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/types.h>

#include <deque>
#include <optional>

namespace abl::device {

/// A GPU computes what it was given while the host goes on: a training gives it steps on a stream of its own,
/// and is at most `ahead()` of them ahead, so that the GPU never waits for a step and the host knows how far
/// it is. On the CPU a step is done when it was given, and this is nothing. Thread: one, which must keep it
/// as long as it works for the device.
class DeviceQueue {
 public:
  explicit DeviceQueue(torch::Device device);
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  /// How many steps may be given that are not done.
  int ahead() const { return stream_ ? kAhead : 0; }
  /// After a step was given; waits for the one `ahead()` steps before.
  void step_given();

 private:
  static constexpr int kAhead = 2;
  std::optional<c10::StreamGuard> stream_;
  std::deque<c10::Event> given_;
};

}  // namespace abl::device
