// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace abl::statistics {

/// What is asked of a comparison of two rows.
struct PowerGoal {
  double power = 0.8;   ///< with which chance the difference is to be seen
  double alpha = 0.05;  ///< two-sided
};

/// The chance that a two-sided t-test of two rows of `n` seeds each sees a difference of `effect` standard
/// deviations: 1 − F(t_c) + F(−t_c), t_c = t(1 − α/2, 2n − 2), F of the noncentral t with 2n − 2 degrees of
/// freedom and noncentrality effect·√(n/2). Nothing for n < 2 and an effect that is not finite.
/// Source: Cohen 1988, section 2.
/// Throws: Error{kInvalidArgument} for an alpha that is not between 0 and 1.
std::optional<double> power_of_t_test(double effect, std::size_t n, double alpha = 0.05);

/// How many seeds each of two rows needs to see a difference; the least n with at least the goal's power.
/// Units: `difference` and `sd` as the values; `sd` is of one row's values. Nothing for a difference or an sd
/// that is 0 or not finite, and above 10,000 seeds.
/// Throws: Error{kInvalidArgument} for a power or an alpha that is not between 0 and 1.
std::optional<std::size_t> seeds_to_see(double difference, double sd, const PowerGoal& goal = {});

/// The same for pairs: a paired t-test of n differences whose deviation is `sd`, with n − 1 degrees of
/// freedom and noncentrality difference/sd·√n.
std::optional<std::size_t> pairs_to_see(double difference, double sd, const PowerGoal& goal = {});

/// "About 5 more seeds to see 0.3 points": how many more the row with fewer seeds needs, by the pooled
/// deviation of both; 0 where it has enough. Only "about": of three seeds each, the true deviation is 0.6 to
/// 2.9 times the pooled one (95 %), and the seeds grow with its square.
/// Nothing as for `seeds_to_see`, and for fewer than two values in a row.
/// Throws: as `seeds_to_see`.
std::optional<std::size_t> more_seeds_to_see(double difference, const std::vector<double>& row,
                                             const std::vector<double>& baseline, const PowerGoal& goal = {});
/// The same where the rows are compared by pairs: by the deviation of their differences.
std::optional<std::size_t> more_pairs_to_see(double difference, const std::vector<double>& row,
                                             const std::vector<double>& baseline, const PowerGoal& goal = {});

}  // namespace abl::statistics
