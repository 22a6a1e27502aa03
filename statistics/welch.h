// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace abl::statistics {

/// Welch's t-test: whether two samples with variances of their own have one mean.
struct Welch {
  double t = 0, df = 0;
  double p = 1;  ///< two-sided
};

/// Nothing where no test can be made: fewer than two values on a side, a value that is not finite, or no
/// spread at all, neither in `a` nor in `b`. Source: Welch 1947, degrees of freedom by Welch and
/// Satterthwaite.
std::optional<Welch> welch_test(const std::vector<double>& a, const std::vector<double>& b);

/// Whether all values are one and the same: their deviation is then 0, whatever rounding makes of it.
bool are_equal(const std::vector<double>& values);

}  // namespace abl::statistics
