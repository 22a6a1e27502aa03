// SPDX-License-Identifier: Apache-2.0
#include "statistics/interval.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "statistics/distributions.h"
#include "statistics/summary.h"

namespace abl::statistics {

void expect_level(double level) {
  if (!(level > 0 && level < 1))
    throw Error{Code::kInvalidArgument, fmt::format("level {}: expected a number between 0 and 1", level)};
}

std::optional<Interval> t_interval(double estimate, double standard_error, double df, double level) {
  expect_level(level);
  const double half = t_quantile((1 + level) / 2, df) * standard_error;
  if (!(half > 0) || !std::isfinite(estimate - half) || !std::isfinite(estimate + half)) return std::nullopt;
  return Interval{.low = estimate - half, .high = estimate + half};
}

std::optional<Interval> t_interval(const std::vector<double>& values, double level) {
  expect_level(level);
  const auto summary = summarise(values);
  if (!summary || !summary->standard_error) return std::nullopt;
  return t_interval(summary->mean, *summary->standard_error, static_cast<double>(summary->n - 1), level);
}

}  // namespace abl::statistics
