// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/device/device_queue.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace abl::device {

DeviceQueue::DeviceQueue(torch::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl implementation{device.type()};
  const auto here = device.has_index() ? device : implementation.getDevice();
  implementation.synchronizeDevice(here.index());  // the model came by another stream
  stream_.emplace(implementation.getStreamFromGlobalPool(here));
}

void DeviceQueue::step_given() {
  if (!stream_) return;
  const auto stream = stream_->current_stream();
  given_.emplace_back(stream.device_type());
  given_.back().record(stream);
  if (given_.size() <= kAhead) return;
  given_.front().synchronize();
  given_.pop_front();
}

}  // namespace abl::device
