// SPDX-License-Identifier: Apache-2.0
#include "statistics/welch.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "statistics/mean_sd.h"

namespace abl::statistics {
namespace {

bool are_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

/// A sample's mean, and the variance of that mean.
struct Sample {
  explicit Sample(const std::vector<double>& values) : n{static_cast<double>(values.size())} {
    const MeanSd spread = mean_sd(values);
    mean = spread.mean;
    if (!are_equal(values)) variance = *spread.sd * *spread.sd / n;
  }
  double n, mean = 0, variance = 0;
};

}  // namespace

bool are_equal(const std::vector<double>& values) {
  return std::ranges::adjacent_find(values, std::not_equal_to{}) == values.end();
}

std::optional<Welch> welch_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2 || !are_finite(a) || !are_finite(b)) return std::nullopt;
  const Sample x{a}, y{b};
  const double variance = x.variance + y.variance;
  if (!(variance > 0) || !std::isfinite(variance)) return std::nullopt;
  // by shares of the variance: its square would underflow where metrics are tiny
  const double share = x.variance / variance;
  Welch test{.t = (x.mean - y.mean) / std::sqrt(variance),
             .df = 1 / (share * share / (x.n - 1) + (1 - share) * (1 - share) / (y.n - 1))};
  if (!std::isfinite(test.t)) return std::nullopt;
  const boost::math::students_t_distribution<double> student{test.df};
  test.p = 2 * boost::math::cdf(boost::math::complement(student, std::abs(test.t)));
  return test;
}

}  // namespace abl::statistics
