// SPDX-License-Identifier: Apache-2.0
#include "statistics/difference.h"

#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/tools/roots.hpp>

#include <cmath>
#include <cstdint>

#include "statistics/distributions.h"
#include "statistics/paired_t.h"
#include "statistics/summary.h"
#include "statistics/welch.h"

namespace abl::statistics {
namespace {

/// The noncentrality with which a noncentral t is at most `t` with probability `p`.
std::optional<double> noncentrality_of(double t, double df, double p) {
  const auto excess = [=](double noncentrality) { return noncentral_t_cdf(t, df, noncentrality) - p; };
  const double spread = std::sqrt(1 + t * t / (2 * df));
  const double guess = t - normal_quantile(p) * spread;  // where T is about normal
  double low = guess - 0.25 * spread, high = guess + 0.25 * spread;
  double at_low = excess(low), at_high = excess(high);  // falls from 1 − p to −p
  for (double step = 0.5 * spread; at_low < 0; step *= 2) at_low = excess(low -= step);
  for (double step = 0.5 * spread; at_high > 0; step *= 2) at_high = excess(high += step);
  if (!std::isfinite(at_low) || !std::isfinite(at_high)) return std::nullopt;
  if (at_low == 0) return low;
  if (at_high == 0) return high;
  std::uintmax_t steps = 100;
  const auto close = [=](double a, double b) { return std::abs(a - b) <= 1e-13 * (spread + std::abs(a)); };
  const auto [left, right] =
      boost::math::tools::toms748_solve(excess, low, high, at_low, at_high, close, steps);
  const double found = (left + right) / 2;
  if (!(std::abs(excess(found)) < 1e-9)) return std::nullopt;  // lost on the way
  return found;
}

}  // namespace

std::optional<Difference> difference_to_baseline(const std::vector<double>& row,
                                                 const std::vector<double>& baseline, Pairing pairing,
                                                 double level) {
  expect_level(level);
  if (pairing == Pairing::kBySeed && row.size() != baseline.size()) return std::nullopt;
  const auto ours = summarise(row), theirs = summarise(baseline);
  if (!ours || !theirs || !std::isfinite(ours->mean - theirs->mean)) return std::nullopt;
  Difference difference{.value = ours->mean - theirs->mean};
  difference.test = pairing == Pairing::kBySeed ? paired_t_test(row, baseline) : welch_test(row, baseline);
  if (difference.test) difference.interval = interval_of(*difference.test, level);
  return difference;
}

std::optional<EffectSize> hedges_g(const std::vector<double>& a, const std::vector<double>& b, double level) {
  expect_level(level);
  const auto sd = pooled_sd(a, b);
  if (!sd) return std::nullopt;
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  const double df = n + m - 2, d = (summarise(a)->mean - summarise(b)->mean) / *sd;
  const double unbiased = 1 / (std::sqrt(df / 2) * boost::math::tgamma_delta_ratio((df - 1) / 2, 0.5));
  if (!std::isfinite(d)) return std::nullopt;
  EffectSize effect{.g = unbiased * d};
  const double root = std::sqrt(n * m / (n + m)), tail = (1 - level) / 2;
  const auto low = noncentrality_of(d * root, df, 1 - tail), high = noncentrality_of(d * root, df, tail);
  if (low && high) effect.interval = Interval{.low = *low / root, .high = *high / root};
  return effect;
}

}  // namespace abl::statistics
