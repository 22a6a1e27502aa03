// SPDX-License-Identifier: Apache-2.0
#include "statistics/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "statistics/mean_sd.h"

namespace abl::statistics {

bool are_equal(const std::vector<double>& values) {
  return std::ranges::adjacent_find(values, std::not_equal_to{}) == values.end();
}

bool are_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

std::optional<Summary> summarise(const std::vector<double>& values) {
  if (values.empty() || !are_finite(values)) return std::nullopt;
  const MeanSd spread = mean_sd(values);
  if (!std::isfinite(spread.mean)) return std::nullopt;
  Summary summary{.n = values.size(), .mean = spread.mean};
  if (values.size() < 2) return summary;
  const double sd = are_equal(values) ? 0 : *spread.sd;
  if (!std::isfinite(sd)) return summary;
  summary.sd = sd;
  summary.standard_error = sd / std::sqrt(static_cast<double>(values.size()));
  return summary;
}

std::optional<double> pooled_sd(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = summarise(a), y = summarise(b);
  if (!x || !y || !x->sd || !y->sd) return std::nullopt;
  const auto n = static_cast<double>(x->n), m = static_cast<double>(y->n);
  const double sd =
      std::hypot(std::sqrt((n - 1) / (n + m - 2)) * *x->sd, std::sqrt((m - 1) / (n + m - 2)) * *y->sd);
  if (!(sd > 0) || !std::isfinite(sd)) return std::nullopt;
  return sd;
}

}  // namespace abl::statistics
