// SPDX-License-Identifier: Apache-2.0
#include "statistics/welch.h"

#include <cmath>

namespace abl::statistics {

std::optional<TTest> welch_test(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = summarise(a), y = summarise(b);
  if (!x || !y || !x->standard_error || !y->standard_error) return std::nullopt;
  const double standard_error = std::hypot(*x->standard_error, *y->standard_error);
  if (!(standard_error > 0)) return std::nullopt;
  // by shares of the variance: its square would underflow where metrics are tiny
  const double of_x = *x->standard_error / standard_error, of_y = *y->standard_error / standard_error;
  const double share = of_x * of_x, other = of_y * of_y;
  const auto freedom = [](const Summary& sample) { return static_cast<double>(sample.n - 1); };
  return t_test(x->mean - y->mean, standard_error,
                1 / (share * share / freedom(*x) + other * other / freedom(*y)));
}

}  // namespace abl::statistics
