// SPDX-License-Identifier: Apache-2.0
#include "statistics/welch.h"

#include <cmath>

namespace abl::statistics {

std::optional<TTest> welch_test(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = summarise(a), y = summarise(b);
  return x && y ? welch_test_of(*x, *y) : std::nullopt;
}

std::optional<TTest> welch_test_of(const Summary& a, const Summary& b) {
  if (!a.standard_error || !b.standard_error) return std::nullopt;
  const double standard_error = std::hypot(*a.standard_error, *b.standard_error);
  if (!(standard_error > 0)) return std::nullopt;
  // by shares of the variance: its square would underflow where metrics are tiny
  const double of_a = *a.standard_error / standard_error, of_b = *b.standard_error / standard_error;
  const double share = of_a * of_a, other = of_b * of_b;
  const auto freedom = [](const Summary& sample) { return static_cast<double>(sample.n - 1); };
  return t_test(a.mean - b.mean, standard_error,
                1 / (share * share / freedom(a) + other * other / freedom(b)));
}

}  // namespace abl::statistics
