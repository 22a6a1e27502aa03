// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// In which order an epoch goes through the images: a shuffle of its own, a function of seed and epoch alone.
/// Thread: any.
class EpochOrder {
 public:
  EpochOrder(std::int64_t seed, std::uint32_t images) : seed_{seed}, images_{images} {}
  /// Kept until another epoch is asked for.
  std::shared_ptr<const std::vector<std::uint32_t>> of(std::uint64_t epoch) {
    const std::scoped_lock lock{mutex_};
    if (!order_ || epoch != epoch_) {
      order_ = std::make_shared<const std::vector<std::uint32_t>>(
          permutation(images_, RandomStream{seed_, Purpose::kOrder, {epoch}}));
      epoch_ = epoch;
    }
    return order_;
  }

 private:
  const std::int64_t seed_;
  const std::uint32_t images_;
  std::mutex mutex_;
  std::uint64_t epoch_ = 0;
  std::shared_ptr<const std::vector<std::uint32_t>> order_;
};

}  // namespace abl::trainer
