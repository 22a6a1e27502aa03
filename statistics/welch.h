// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "statistics/summary.h"
#include "statistics/t_test.h"

namespace abl::statistics {

/// Welch's t-test: whether two samples with variances of their own have one mean.
///   t = (ā − b̄) / √(s²ₐ/n + s²_b/m), degrees of freedom by Welch and Satterthwaite.
/// Nothing where no test can be made: fewer than two values on a side, a value that is not finite, or no
/// spread at all, neither in `a` nor in `b`. Source: Welch 1947.
std::optional<TTest> welch_test(const std::vector<double>& a, const std::vector<double>& b);
/// The same of what is known of them.
std::optional<TTest> welch_test_of(const Summary& a, const Summary& b);

}  // namespace abl::statistics
