// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/batch_share.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::ranks {

std::vector<std::int64_t> places_of(int rank, int ranks, std::int64_t size) {
  std::vector<std::int64_t> places;
  for (std::int64_t place = 0; place < size; ++place)
    if (std::min(place, size - 1 - place) % ranks == rank) places.push_back(place);
  return places;
}

BatchShare share_batch(int rank, int ranks, std::int64_t size, int parts) {
  const std::int64_t longest = (size + parts - 1) / parts;
  const auto count_of = [&](int one, std::int64_t first) {
    const auto places = places_of(one, ranks, size);
    return std::ranges::count_if(places, [&](auto it) { return it >= first && it < first + longest; });
  };
  BatchShare share{.batch = size, .places = places_of(rank, ranks, size), .parts = {}};
  std::int64_t begin = 0;
  for (std::int64_t first = 0; first < size; first += longest) {
    for (int one = 0; one < ranks; ++one)
      if (count_of(one, first) == 0)
        throw Error{Code::kInvalidArgument,
                    fmt::format("recipe.batch: {} images in parts of {} leave rank {} of {} without one; "
                                "expected at least {} in a part: take fewer ranks or parts",
                                size, longest, one, ranks, 2 * ranks)};
    const std::int64_t own = count_of(rank, first);
    share.parts.push_back({.first = begin,
                           .size = own,
                           .weight = static_cast<double>(ranks * own) / static_cast<double>(size)});
    begin += own;
  }
  return share;
}

}  // namespace abl::ranks
