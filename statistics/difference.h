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

/// Hedges' g: the difference of two means in standard deviations, without the bias of few values.
///   g = J · (ā − b̄) / s, s pooled, J = Γ(f/2) / (√(f/2) · Γ((f − 1)/2)), f = n + m − 2
/// Units: standard deviations within a row.
/// Source: Hedges 1981, exact J.
struct EffectSize {
  double g = 0;
  /// Of the difference in standard deviations that g estimates: the noncentralities that give t with
  /// probability α/2 and 1 − α/2, over √(nm / (n + m)). Exact for normal values of one variance. Nothing
  /// where a bound is too large for a double. Source: Steiger and Fouladi 1997.
  std::optional<Interval> interval;
};

/// Nothing for fewer than two values on a side, a value that is not finite, or no spread.
/// Throws: Error{kInvalidArgument} for a level that is not between 0 and 1.
std::optional<EffectSize> hedges_g(const std::vector<double>& a, const std::vector<double>& b,
                                   double level = kLevel);

}  // namespace abl::statistics
