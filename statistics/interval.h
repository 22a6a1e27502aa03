// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace abl::statistics {

/// The level that tables print, unless another is asked for.
inline constexpr double kLevel = 0.95;

/// Where the true value is with the probability of a level.
/// Units: those of the values.
struct Interval {
  double low = 0, high = 0;
};

/// Of a mean: mean ± t(1 − α/2, n − 1) · sd / √n. Nothing for fewer than two values, a value that is not
/// finite, and values that are all equal: that seeds agree by chance says nothing of how far others would be.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<Interval> t_interval(const std::vector<double>& values, double level = kLevel);

/// Of an estimate: estimate ± t(1 − α/2, df) · standard error.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<Interval> t_interval(double estimate, double standard_error, double df, double level = kLevel);

/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
void expect_level(double level);

}  // namespace abl::statistics
