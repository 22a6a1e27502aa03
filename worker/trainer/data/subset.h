// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

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
  auto order = permutation(static_cast<std::uint32_t>(items.size()), RandomStream{0, Purpose::kSubset});
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  std::vector<T> kept;
  for (const auto index : order) kept.push_back(std::move(items[index]));
  items = std::move(kept);
}

}  // namespace abl::trainer
