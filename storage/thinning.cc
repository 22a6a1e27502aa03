// SPDX-License-Identifier: Apache-2.0
#include "storage/thinning.h"

#include <algorithm>
#include <cmath>

namespace abl::storage {

Series thinned(const Series& series, std::uint32_t max_points) {
  const std::size_t size = series.steps.size();
  if (size <= max_points) return series;
  Series result{.name = series.name};
  const auto keep = [&](std::size_t i) {
    result.steps.push_back(series.steps[i]);
    result.values.push_back(series.values[i]);
    result.times_ms.push_back(series.times_ms[i]);
  };
  const auto below = [&](std::size_t a, std::size_t b) {
    const double x = series.values[a], y = series.values[b];
    return std::isnan(y) ? !std::isnan(x) : x < y;
  };
  const std::size_t stretches = max_points > 3 ? (max_points - 2) / 2 : 0, inner = size - 2;
  if (max_points > 1) keep(0);
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = 1 + s * inner / stretches, end = 1 + (s + 1) * inner / stretches;
    std::size_t lowest = begin, highest = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (below(i, lowest)) lowest = i;
      if (below(highest, i)) highest = i;
    }
    keep(std::min(lowest, highest));
    if (lowest != highest) keep(std::max(lowest, highest));
  }
  keep(size - 1);
  return result;
}

}  // namespace abl::storage
