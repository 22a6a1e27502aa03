// SPDX-License-Identifier: Apache-2.0
#include "statistics/difference.h"

#include <cmath>

#include "statistics/paired_t.h"
#include "statistics/summary.h"
#include "statistics/welch.h"

namespace abl::statistics {

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

}  // namespace abl::statistics
