// SPDX-License-Identifier: Apache-2.0
#include "statistics/t_test.h"

#include <cmath>

#include "statistics/distributions.h"

namespace abl::statistics {

std::optional<TTest> t_test(double difference, double standard_error, double df) {
  if (!(standard_error > 0) || !std::isfinite(standard_error)) return std::nullopt;
  const double t = difference / standard_error;
  const double p = t_two_sided_p(t, df);
  if (!std::isfinite(t) || !std::isfinite(p)) return std::nullopt;
  return TTest{.difference = difference, .standard_error = standard_error, .t = t, .df = df, .p = p};
}

std::optional<Interval> interval_of(const TTest& test, double level) {
  return t_interval(test.difference, test.standard_error, test.df, level);
}

}  // namespace abl::statistics
