// SPDX-License-Identifier: Apache-2.0
#include "models/counting/counting_allocator.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace abl::models {
namespace {

/// What is allocated may outlive the allocator, so the sums do not live in it.
struct Sums {
  std::atomic<std::int64_t> held = 0;
  std::atomic<std::int64_t> peak = 0;
};
Sums& sums(c10::DeviceType device) {
  static Sums meta, other;
  return device == c10::DeviceType::Meta ? meta : other;
}

void add(Sums& sums, std::int64_t bytes) {
  const auto held = sums.held += bytes;
  auto peak = sums.peak.load();
  while (peak < held && !sums.peak.compare_exchange_weak(peak, held)) {
  }
}

/// Stands before the memory that is handed out: PyTorch gives back the address alone.
struct alignas(64) Head {
  Sums* sums;
  std::int64_t bytes;
};

void release(void* memory) {
  auto* const head = static_cast<Head*>(memory) - 1;
  head->sums->held -= head->bytes;
  std::free(head);
}

}  // namespace

CountingAllocator::CountingAllocator(c10::DeviceType device)
    : device_{device}, before_{c10::GetAllocator(device)} {
  sums(device_).held = 0;
  sums(device_).peak = 0;
  c10::SetAllocator(device_, this, std::numeric_limits<std::uint8_t>::max());
}

CountingAllocator::~CountingAllocator() {
  c10::SetAllocator(device_, before_, std::numeric_limits<std::uint8_t>::max());
}

c10::DataPtr CountingAllocator::allocate(std::size_t bytes) {
  const bool meta = device_ == c10::DeviceType::Meta;
  const auto size = meta ? 0 : (bytes + alignof(Head) - 1) / alignof(Head) * alignof(Head);
  void* const block = std::aligned_alloc(alignof(Head), sizeof(Head) + size);
  if (!block) throw std::bad_alloc{};
  auto* const head = new (block) Head{&sums(device_), static_cast<std::int64_t>(bytes)};
  add(*head->sums, head->bytes);
  void* const memory = head + 1;
  return {meta ? nullptr : memory, memory, &release, device_};
}

c10::DeleterFnPtr CountingAllocator::raw_deleter() const { return &release; }

void CountingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

std::int64_t CountingAllocator::held() const { return sums(device_).held; }
std::int64_t CountingAllocator::peak() const { return sums(device_).peak; }
void CountingAllocator::forget_peak() { sums(device_).peak = sums(device_).held.load(); }

}  // namespace abl::models
