// SPDX-License-Identifier: Apache-2.0
#include "scoring/nearest_neighbours.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace abl::scoring {

std::vector<int> vote(std::span<const float> similarities, std::span<const int> labels,
                      const NeighbourVote& options) {
  const auto k = static_cast<std::size_t>(std::max(0, options.neighbours));
  if (k < 1 || similarities.size() < k || labels.size() != similarities.size())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("{} similarities and {} labels for a vote of {}; expected as many of both, and at "
                    "least those",
                    similarities.size(), labels.size(), options.neighbours)};
  if (!(options.temperature > 0))
    throw Error{Code::kInvalidArgument,
                fmt::format("temperature {}; expected a number above 0", options.temperature)};
  const auto nearest = similarities.first(k);
  if (!std::ranges::is_sorted(nearest, std::ranges::greater{}) ||
      std::ranges::any_of(nearest, [](float similarity) { return std::isnan(similarity); }))
    throw Error{Code::kInvalidArgument, "similarities are not sorted; expected the highest first"};
  std::vector<double> votes(static_cast<std::size_t>(std::max(0, options.classes)));
  for (std::size_t i = 0; i < k; ++i) {
    if (labels[i] < 0 || labels[i] >= options.classes)
      throw Error{Code::kInvalidArgument,
                  fmt::format("label {}; expected 0 to {}", labels[i], options.classes - 1)};
    // relative to the most similar one: nothing overflows, and no order changes
    votes[static_cast<std::size_t>(labels[i])] += std::exp(
        (static_cast<double>(nearest[i]) - static_cast<double>(nearest.front())) / options.temperature);
  }
  std::vector<int> classes(votes.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::ranges::stable_sort(classes, std::ranges::greater{},
                           [&](int of) { return votes[static_cast<std::size_t>(of)]; });
  return classes;
}

}  // namespace abl::scoring
