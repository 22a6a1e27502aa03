// SPDX-License-Identifier: Apache-2.0
#include "statistics/permutation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>

#include "statistics/paired_t.h"
#include "statistics/summary.h"

namespace abl::statistics {
namespace {

using Sums = std::vector<double>;  // in ascending order

/// The sums of `one` with `x` added to each, and those of `other` with `y`.
Sums merged(const Sums& one, double x, const Sums& other, double y) {
  Sums all;
  all.reserve(one.size() + other.size());
  auto a = one.begin();
  auto b = other.begin();
  while (a != one.end() || b != other.end()) {
    const bool from_one = b == other.end() || (a != one.end() && *a + x <= *b + y);
    all.push_back(from_one ? *a++ + x : *b++ + y);
  }
  return all;
}

/// The sums of all choices of k values, for each k.
std::vector<Sums> sums_of_choices(std::span<const double> values) {
  std::vector<Sums> by_size(values.size() + 1);
  by_size[0] = {0};
  for (std::size_t taken = 0; taken < values.size(); ++taken)
    for (std::size_t k = taken + 1; k > 0; --k)
      by_size[k] = merged(by_size[k], 0, by_size[k - 1], values[taken]);
  return by_size;
}

/// The sums of all ways to give the values signs.
Sums sums_of_signs(std::span<const double> values) {
  Sums sums{0};
  for (const double value : values) sums = merged(sums, -value, sums, value);
  return sums;
}

/// How many pairs, one of each list, sum to `bound` or more in size.
double count_far(const Sums& one, const Sums& other, double bound) {
  if (!(bound > 0)) return static_cast<double>(one.size()) * static_cast<double>(other.size());
  double count = 0;
  auto high = other.end(), low = other.begin();  // as a grows, more of `other` reach above, fewer below
  for (const double a : one) {
    while (high != other.begin() && a + *std::prev(high) >= bound) --high;
    count += static_cast<double>(other.end() - high);
  }
  low = other.end();
  for (const double a : one) {
    while (low != other.begin() && a + *std::prev(low) > -bound) --low;
    count += static_cast<double>(low - other.begin());
  }
  return count;
}

/// By how much sums of `count` values may differ and be equal.
double rounding(std::size_t count, double largest) {
  return 4 * static_cast<double>(count) * std::numeric_limits<double>::epsilon() * largest;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

}  // namespace

std::optional<double> permutation_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2 || a.size() + b.size() > kMostPermuted) return std::nullopt;
  std::vector<double> all{a};
  all.insert(all.end(), b.begin(), b.end());
  const auto pooled = summarise(all);
  if (!pooled) return std::nullopt;
  const double tolerance = rounding(all.size(), largest_of(all));
  // around their mean the means are as far apart as the sum of one side is from 0
  for (double& value : all) value -= pooled->mean;
  double observed = 0;
  for (std::size_t i = 0; i < a.size(); ++i) observed += all[i];
  if (!std::isfinite(observed) || !std::isfinite(tolerance)) return std::nullopt;
  const std::span<const double> values{all};
  const auto first = sums_of_choices(values.first(all.size() / 2));
  const auto second = sums_of_choices(values.subspan(all.size() / 2));
  double far = 0, ways = 0;
  for (std::size_t k = 0; k < first.size() && k <= a.size(); ++k) {
    if (a.size() - k >= second.size()) continue;
    const Sums& others = second[a.size() - k];
    far += count_far(first[k], others, std::abs(observed) - tolerance);
    ways += static_cast<double>(first[k].size()) * static_cast<double>(others.size());
  }
  return far / ways;
}

std::optional<double> paired_permutation_p(const std::vector<double>& a, const std::vector<double>& b) {
  const auto of = differences(a, b);
  if (!of || of->size() < 2 || of->size() > kMostPermuted || !are_finite(*of)) return std::nullopt;
  double observed = 0;
  for (const double difference : *of) observed += difference;
  const double tolerance = rounding(of->size(), std::max(largest_of(a), largest_of(b)));
  if (!std::isfinite(observed) || !std::isfinite(tolerance)) return std::nullopt;
  const std::span<const double> values{*of};
  const Sums first = sums_of_signs(values.first(of->size() / 2));
  const Sums second = sums_of_signs(values.subspan(of->size() / 2));
  return count_far(first, second, std::abs(observed) - tolerance) /
         (static_cast<double>(first.size()) * static_cast<double>(second.size()));
}

}  // namespace abl::statistics
