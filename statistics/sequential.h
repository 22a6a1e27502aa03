// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "statistics/interval.h"

namespace abl::statistics {

/// How the error that is allowed is spent over the looks at a comparison to which seeds are added.
enum class Spending {
  kOBrienFleming,  ///< little at first, nearly all at the last look: 2 − 2Φ(z(1 − α/2) / √t)
  kPocock,         ///< about the same at each look: α·ln(1 + (e − 1)·t)
};

/// A comparison that is looked at after every few seeds, at most so many times. Looking until p < 0.05 calls
/// equal rows different far more often than in 5 %; here all looks together do so in at most α, whatever
/// stops them. Look k of K may spend α_k = S(k/K) − S((k − 1)/K), and Bonferroni's bound adds them up: it
/// holds for every test whose p-values hold at a number of seeds that was fixed before. So look k is of the
/// same seeds of both rows, as many as were planned for it, also where more are stored by then; which row
/// gets seeds first may depend on anything. What comes from it is labelled as sequential. Holm's correction
/// takes these p-values as any others.
/// Source: Lan and DeMets 1983, spending functions; their recursion is for known variances, hence the bound.
class SequentialDesign {
 public:
  /// α = 1 − level.
  /// Throws: Error{kInvalidArgument} for no looks, and for a level that is not between 0 and 1.
  explicit SequentialDesign(std::size_t looks, double level = kLevel,
                            Spending spending = Spending::kOBrienFleming);

  std::size_t looks() const { return spent_.size(); }

  /// The level at which look k, counted from 0, computes its interval, 1 − α_k: all looks' intervals together
  /// hold the true value with the level of the design. Of many looks the first may spend next to nothing;
  /// their level is the largest below 1, at which `t_interval` knows no interval. Throws: Error{kOutOfRange}
  /// from the last look on.
  double level_at(std::size_t look) const;

  /// One p-value of all looks until now, to be compared with α: the least pₖ·α/α_k, at most 1. A look without
  /// a p-value has spent its share all the same. Nothing where no look has one.
  /// Throws: Error{kOutOfRange} for more looks than the design has.
  std::optional<double> p(const std::vector<std::optional<double>>& p_of_looks) const;

 private:
  double alpha_;
  std::vector<double> spent_;  // α_k
};

}  // namespace abl::statistics
