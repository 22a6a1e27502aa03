// SPDX-License-Identifier: Apache-2.0
#include "statistics/paired_t.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "statistics/summary.h"

namespace abl::statistics {
namespace {

/// Whether the differences are what is left of one by rounding: 0.3 − 0.2 is not 0.2 − 0.1.
bool differ_by_rounding(const std::vector<double>& of, double sd, const std::vector<double>& a,
                        const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < of.size(); ++i) largest = std::max({largest, std::abs(a[i]), std::abs(b[i])});
  return sd <= 2 * std::numeric_limits<double>::epsilon() * largest;
}

}  // namespace

std::optional<std::vector<double>> differences(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::nullopt;
  std::vector<double> result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus{});
  return result;
}

std::optional<TTest> paired_t_test(const std::vector<double>& a, const std::vector<double>& b) {
  const auto of = differences(a, b);
  const auto summary = of ? summarise(*of) : std::nullopt;
  if (!summary || !summary->standard_error || differ_by_rounding(*of, *summary->sd, a, b))
    return std::nullopt;
  return t_test(summary->mean, *summary->standard_error, static_cast<double>(summary->n - 1));
}

}  // namespace abl::statistics
