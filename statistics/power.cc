// SPDX-License-Identifier: Apache-2.0
#include "statistics/power.h"

#include <algorithm>
#include <cmath>

#include "statistics/distributions.h"
#include "statistics/interval.h"
#include "statistics/paired_t.h"
#include "statistics/summary.h"

namespace abl::statistics {
namespace {

constexpr std::size_t kMostSeeds = 10'000;

std::optional<double> power_of(double noncentrality, double df, double alpha) {
  const double critical = t_quantile(1 - alpha / 2, df);
  // F(−t) of δ is 1 − F(t) of −δ
  const double seen = 1 - noncentral_t_cdf(critical, df, noncentrality) +
                      (1 - noncentral_t_cdf(critical, df, -noncentrality));
  if (!std::isfinite(seen)) return std::nullopt;
  return std::min(seen, 1.0);
}

/// The least n, two or more, whose power is enough. `variances`: of the estimate there are as many over n.
template <class Power>
std::optional<std::size_t> least_seeds(double difference, double sd, double variances, const PowerGoal& goal,
                                       const Power& power_with) {
  expect_level(goal.power);
  expect_level(goal.alpha);
  const double effect = std::abs(difference) / sd;
  if (!(sd > 0) || !(effect > 0) || !std::isfinite(effect)) return std::nullopt;
  bool known = true;
  const auto enough = [&](std::size_t n) {
    const auto power = n < 2 ? std::optional{0.0} : power_with(effect, n);
    known = known && power;
    return !power || *power >= goal.power;
  };
  // near what a normal distribution says, then by doubled steps and halves
  const double needed = (normal_quantile(1 - goal.alpha / 2) + normal_quantile(goal.power)) / effect;
  const double about = variances * needed * needed;
  if (!(about < kMostSeeds)) return std::nullopt;
  std::size_t low = 1, high = std::max<std::size_t>(2, static_cast<std::size_t>(about));
  for (std::size_t step = 1; !enough(high); step *= 2) {
    low = high;
    if ((high += step) > kMostSeeds) return std::nullopt;
  }
  for (std::size_t step = 1; high - low > step; step *= 2) {  // from above: the guess is close
    if (enough(high - step)) {
      high -= step;
    } else {
      low = high - step;
      break;
    }
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (enough(middle) ? high : low) = middle;
  }
  if (!known) return std::nullopt;
  return high;
}

}  // namespace

std::optional<double> power_of_t_test(double effect, std::size_t n, double alpha) {
  expect_level(alpha);
  if (n < 2 || !std::isfinite(effect)) return std::nullopt;
  const auto seeds = static_cast<double>(n);
  return power_of(std::abs(effect) * std::sqrt(seeds / 2), 2 * seeds - 2, alpha);
}

std::optional<std::size_t> seeds_to_see(double difference, double sd, const PowerGoal& goal) {
  return least_seeds(difference, sd, 2, goal,
                     [&](double effect, std::size_t n) { return power_of_t_test(effect, n, goal.alpha); });
}

std::optional<std::size_t> pairs_to_see(double difference, double sd, const PowerGoal& goal) {
  return least_seeds(difference, sd, 1, goal, [&](double effect, std::size_t n) {
    const auto pairs = static_cast<double>(n);
    return power_of(effect * std::sqrt(pairs), pairs - 1, goal.alpha);
  });
}

std::optional<std::size_t> more_seeds_to_see(double difference, const std::vector<double>& row,
                                             const std::vector<double>& baseline, const PowerGoal& goal) {
  const auto sd = pooled_sd(row, baseline);
  const auto needed = seeds_to_see(difference, sd.value_or(0), goal);
  if (!needed) return std::nullopt;
  const std::size_t fewest = std::min(row.size(), baseline.size());
  return *needed > fewest ? *needed - fewest : 0;
}

std::optional<std::size_t> more_pairs_to_see(double difference, const std::vector<double>& row,
                                             const std::vector<double>& baseline, const PowerGoal& goal) {
  const auto of = differences(row, baseline);
  const auto spread = of ? summarise(*of) : std::nullopt;
  const auto needed = pairs_to_see(difference, spread ? spread->sd.value_or(0) : 0, goal);
  if (!needed) return std::nullopt;
  return *needed > row.size() ? *needed - row.size() : 0;
}

}  // namespace abl::statistics
