// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/box_choice.h"

#include <torch/utils.h>

#include <memory>
#include <unordered_set>

namespace abl::tasks {

std::vector<std::int64_t> some_below(std::int64_t count, std::int64_t chosen, images::RandomStream& random) {
  std::vector<std::int64_t> some;
  std::unordered_set<std::int64_t> taken;
  for (std::int64_t last = count - chosen; last < count; ++last) {
    const auto drawn = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(last) + 1));
    some.push_back(taken.insert(drawn).second ? drawn : last);
    taken.insert(some.back());
  }
  return some;
}

models::Choose choice_of(std::int64_t seed, std::int64_t step, const std::vector<std::int64_t>& places) {
  auto streams = std::make_shared<std::vector<images::RandomStream>>();
  for (const auto place : places)
    streams->emplace_back(
        seed, images::Purpose::kBoxes,
        std::initializer_list{static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(place)});
  return [streams](std::size_t image, std::int64_t count, std::int64_t chosen) {
    return torch::tensor(some_below(count, chosen, streams->at(image)), torch::kLong);
  };
}

}  // namespace abl::tasks
