// SPDX-License-Identifier: Apache-2.0
#include "statistics/sign_agreement.h"

#include <cmath>

#include "statistics/distributions.h"

namespace abl::statistics {

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
