// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "images/random.h"

namespace abl::data {

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
          images::permutation(images_, images::RandomStream{seed_, images::Purpose::kOrder, {epoch}}));
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

/// Keeps the first `count` of a fixed shuffle, in their own order; all for 0. The same images whatever format
/// they are stored in, as long as their order is. A split of no images is left alone: who needs it says so.
/// Throws: Error{kInvalidArgument} where `count`, which is that `key` of a trial's data, is more than there
/// are: a table that says 50,000 must not have been trained on fewer.
template <class T>
void keep_some(std::vector<T>& items, int count, std::string_view key) {
  if (count <= 0 || items.empty() || static_cast<std::size_t>(count) == items.size()) return;
  if (static_cast<std::size_t>(count) > items.size())
    throw Error{
        Code::kInvalidArgument,
        fmt::format(
            "data.{0}: {1} is more than the {2} images of its split; expected at most {2}, or 0 for all", key,
            count, items.size())};
  auto order = images::permutation(static_cast<std::uint32_t>(items.size()),
                                   images::RandomStream{0, images::Purpose::kSubset});
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  std::vector<T> kept;
  for (const auto index : order) kept.push_back(std::move(items[index]));
  items = std::move(kept);
}

}  // namespace abl::data
