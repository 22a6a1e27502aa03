// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "statistics/interval.h"

namespace abl::statistics {

/// A difference of means, and whether it is more than the spread explains.
/// Units: `difference` and `standard_error` are in those of the values.
struct TTest {
  double difference = 0;  ///< first less second
  double standard_error = 0;
  double t = 0;  ///< difference / standard error
  double df = 0;
  double p = 1;  ///< two-sided
};

/// Nothing without a standard error, and where t is too large for a double.
std::optional<TTest> t_test(double difference, double standard_error, double df);

/// Of the difference: difference ± t(1 − α/2, df) · standard error.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<Interval> interval_of(const TTest& test, double level = kLevel);

}  // namespace abl::statistics
