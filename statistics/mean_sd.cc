// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_sd.h"

#include <cmath>

namespace abl::statistics {

MeanSd mean_sd(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanSd result{.mean = sum / n};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.sd = std::sqrt(squares / (n - 1));
  return result;
}

}  // namespace abl::statistics
