// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace abl::statistics {

/// Mean and sample standard deviation by the two-pass rule, in the order given: the same inputs give the same
/// bits.
struct MeanSd {
  double mean = 0;
  std::optional<double> sd;
};
MeanSd mean_sd(const std::vector<double>& values);

}  // namespace abl::statistics
