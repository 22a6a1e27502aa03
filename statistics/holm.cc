// SPDX-License-Identifier: Apache-2.0
#include "statistics/holm.h"

#include <algorithm>
#include <cstddef>

namespace abl::statistics {

std::vector<std::optional<double>> holm(const std::vector<std::optional<double>>& p) {
  std::vector<std::size_t> tests;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] && *p[i] >= 0 && *p[i] <= 1) tests.push_back(i);
  std::ranges::stable_sort(tests, {}, [&](std::size_t i) { return *p[i]; });
  std::vector<std::optional<double>> corrected(p.size());
  double largest = 0;
  for (std::size_t rank = 0; rank < tests.size(); ++rank) {
    const auto left = static_cast<double>(tests.size() - rank);
    largest = std::max(largest, std::min(1.0, left * *p[tests[rank]]));
    corrected[tests[rank]] = largest;
  }
  return corrected;
}

}  // namespace abl::statistics
