// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

namespace abl::models {

/// Adds up what is allocated on a device while it lives: the bytes that are held now, and the most that were
/// held at once. On the meta device no memory is behind a tensor, and only its bytes are added up; on the CPU
/// the memory is `std::aligned_alloc`'s, with a head before each block that knows its size.
/// What was allocated may outlive it.
/// Thread: any, for the sums; one of them at a time in a process and device.
class CountingAllocator final : public c10::Allocator {
 public:
  /// `device`: the meta device or the CPU.
  explicit CountingAllocator(c10::DeviceType device);
  ~CountingAllocator() override;
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  std::int64_t held() const;
  std::int64_t peak() const;
  /// From here on, the peak is that of what follows.
  void forget_peak();

 private:
  const c10::DeviceType device_;
  c10::Allocator* const before_;
};

}  // namespace abl::models
