// SPDX-License-Identifier: Apache-2.0
#include "statistics/agreement.h"

#include <boost/math/tools/roots.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "statistics/distributions.h"
#include "statistics/summary.h"

namespace abl::statistics {
namespace {

/// Of the τ of n rows whose true τ is this.
double deviation_of(double tau, double n) {
  using std::numbers::pi;
  const double half = 2 / pi * std::asin(std::sin(tau * pi / 2) / 2);
  const double variance = 2 / (n * (n - 1)) * (1 - tau * tau + 2 * (n - 2) * (1.0 / 9 - half * half));
  return std::sqrt(std::max(variance, 0.0));
}

/// The least τ from which `observed` is at most z deviations away.
double lowest_tau(double observed, double n, double z) {
  if (observed == -1) return -1;
  const auto beyond = [=](double tau) { return observed - tau - z * deviation_of(tau, n); };
  std::uintmax_t steps = 100;
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-15; };
  const double high = std::min(observed, 1 - 1e-9);  // at 1 there is no deviation, and nothing to find
  const auto [left, right] = boost::math::tools::toms748_solve(beyond, -1.0, high, close, steps);
  return (left + right) / 2;
}

}  // namespace

std::optional<Kendall> kendall_tau_b(const std::vector<double>& a, const std::vector<double>& b,
                                     double level) {
  expect_level(level);
  if (a.size() != b.size() || a.size() < 2 || !are_finite(a) || !are_finite(b)) return std::nullopt;
  const auto order = [](double x, double y) { return (x > y) - (x < y); };
  double agree = 0, apart_in_a = 0, apart_in_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const int in_a = order(a[i], a[j]), in_b = order(b[i], b[j]);
      agree += in_a * in_b;
      apart_in_a += in_a != 0;
      apart_in_b += in_b != 0;
    }
  }
  if (apart_in_a == 0 || apart_in_b == 0) return std::nullopt;
  Kendall result{.tau = std::clamp(agree / std::sqrt(apart_in_a) / std::sqrt(apart_in_b), -1.0, 1.0)};
  if (agree == apart_in_a && agree == apart_in_b) result.tau = 1;
  if (agree == -apart_in_a && agree == -apart_in_b) result.tau = -1;
  if (a.size() < 5) return result;
  const auto n = static_cast<double>(a.size());
  const double z = normal_quantile((1 + level) / 2);
  // what is below τ_b for reversed columns is above −τ_b
  const auto low = lowest_tau(result.tau, n, z), high = lowest_tau(-result.tau, n, z);
  result.interval = Interval{.low = low, .high = -high};
  return result;
}

std::optional<SignAgreement> sign_agreement(const std::vector<double>& ours,
                                            const std::vector<double>& theirs, double level) {
  expect_level(level);
  if (ours.size() != theirs.size()) return std::nullopt;
  SignAgreement result;
  const auto has_sign = [](double x) { return x > 0 || x < 0; };
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (!has_sign(ours[i]) || !has_sign(theirs[i])) continue;
    ++result.compared;
    result.agree += (ours[i] > 0) == (theirs[i] > 0);
  }
  if (result.compared == 0) return std::nullopt;
  const auto k = static_cast<double>(result.agree), n = static_cast<double>(result.compared);
  result.share = k / n;
  result.interval = {.low = k > 0 ? beta_quantile((1 - level) / 2, k, n - k + 1) : 0,
                     .high = k < n ? beta_quantile((1 + level) / 2, k + 1, n - k) : 1};
  return result;
}

}  // namespace abl::statistics
