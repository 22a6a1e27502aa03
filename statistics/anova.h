// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace abl::statistics {

/// One row of a factorial sweep: the level of each factor, as a number of its own, and the seeds' values.
struct FactorCell {
  std::vector<std::size_t> levels;
  std::vector<double> values;  ///< none: a row without results, left out
};

/// What a factor, or two together beyond both alone, explain of the spread.
/// Units: `sum_of_squares` in the values' squared.
struct Effect {
  std::vector<std::size_t> factors;  ///< one, or two for an interaction, by their place in `levels`
  std::size_t df = 0;                ///< 0: the rows do not tell it from the other effects
  double sum_of_squares = 0;
  double eta_squared = 0;          ///< of all spread; importance. Where unbalanced they do not add up to 1
  double partial_eta_squared = 0;  ///< of the spread that no other effect explains: SS / (SS + residual)
  std::optional<double> f, p;      ///< nothing where df is 0 or nothing is left over to test against
};

enum class Interactions { kNone, kTwoWay };

/// Analysis of variance, Type II: of each effect what it explains beyond all effects that do not contain it,
/// tested against the residual of the model with all of them. Layouts may be unbalanced and have empty cells;
/// df then counts what the rows tell apart.
///   SS(A) = RSS(B, C, BC) − RSS(A, B, C, BC); SS(AB) = RSS(A, B, C, AC, BC) − RSS(A, B, C, AB, AC, BC)
/// Source: Fox, Applied Regression Analysis, section 8.2; as statsmodels' `anova_lm(…, typ=2)`.
struct Anova {
  std::vector<Effect> effects;  ///< factors in their order, then pairs
  std::size_t residual_df = 0;
  double residual = 0;  ///< sum of squares
  double total = 0;     ///< around the mean of all values
};

/// Nothing for fewer than two values, one that is not finite, values that are equal but for the last
/// four of their 16 digits, no factor, and squares that are too large or too small for a double.
/// Throws: Error{kInvalidArgument} where cells have different numbers of levels.
std::optional<Anova> anova(const std::vector<FactorCell>& cells,
                           Interactions interactions = Interactions::kTwoWay);

}  // namespace abl::statistics
