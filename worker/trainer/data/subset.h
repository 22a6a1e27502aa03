// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// Keeps the first `count` of a fixed shuffle, in their own order; all for 0. The same images whatever format
/// they are stored in, as long as their order is.
template <class T>
void keep_some(std::vector<T>& items, int count) {
  if (count <= 0 || static_cast<std::size_t>(count) >= items.size()) return;
  auto order = permutation(static_cast<std::uint32_t>(items.size()), RandomStream{0, Purpose::kSubset});
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  std::vector<T> kept;
  for (const auto index : order) kept.push_back(std::move(items[index]));
  items = std::move(kept);
}

}  // namespace abl::trainer
