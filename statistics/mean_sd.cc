// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_sd.h"

#include <algorithm>
#include <cmath>

namespace abl::statistics {

MeanSd mean_sd(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  MeanSd result{.mean = sum / n};
  if (values.size() < 2) return result;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value - result.mean));
  // by a power of two, which changes no bit: squares of tiny deviations would vanish, of huge ones overflow
  const int scale = largest > 0 && std::isfinite(largest) ? -std::ilogb(largest) : 0;
  constexpr int kExact = 1000;  // so far a power of two is a number, and multiplying by it as good, and fast
  const double factor = std::scalbn(1, std::clamp(scale, -kExact, kExact));
  double squares = 0;
  for (const double value : values) {
    const double deviation =
        std::abs(scale) <= kExact ? (value - result.mean) * factor : std::scalbn(value - result.mean, scale);
    squares += deviation * deviation;
  }
  result.sd = std::scalbn(std::sqrt(squares / (n - 1)), -scale);
  return result;
}

}  // namespace abl::statistics
