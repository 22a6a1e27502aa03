// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "statistics/interval.h"
#include "statistics/t_test.h"

namespace abl::statistics {

/// Whether value i of a row and value i of the baseline are of one seed, declared before results existed.
enum class Pairing { kNone, kBySeed };

/// How far a row is from the baseline.
/// Units: those of the values.
struct Difference {
  double value = 0;                  ///< mean of the row less mean of the baseline
  std::optional<TTest> test;         ///< Welch's, or the paired one; nothing where its samples have no spread
  std::optional<Interval> interval;  ///< by that test
};

/// Nothing where a mean is not known, and for pairs where the lists have different lengths.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<Difference> difference_to_baseline(const std::vector<double>& row,
                                                 const std::vector<double>& baseline,
                                                 Pairing pairing = Pairing::kNone, double level = kLevel);

}  // namespace abl::statistics
