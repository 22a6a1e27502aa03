// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/distributions.h"

#include <algorithm>
#include <cmath>

namespace abl::trainer {
namespace {

double positive_uniform(RandomStream& random) {
  return 1 - random.uniform();
}  // in (0, 1]: it has a logarithm

/// X = U^(1/a) and Y = V^(1/b), given X + Y <= 1, make X/(X + Y) a Beta(a, b). In logarithms, relative to the
/// larger of the two: with small parameters both are often below what a double can hold.
double johnk(RandomStream& random, double a, double b) {
  for (;;) {
    const double log_x = std::log(positive_uniform(random)) / a;
    const double log_y = std::log(positive_uniform(random)) / b;
    const double larger = std::max(log_x, log_y);
    const double x = std::exp(log_x - larger), y = std::exp(log_y - larger);
    if (larger + std::log(x + y) <= 0) return x / (x + y);
  }
}

}  // namespace

double gamma(RandomStream& random, double shape) {
  if (shape < 1) {
    const double above = gamma(random, shape + 1);
    return above * std::pow(positive_uniform(random), 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double normal = random.normal(), root = 1 + c * normal;
    if (root <= 0) continue;
    const double cube = root * root * root;
    if (std::log(positive_uniform(random)) < 0.5 * normal * normal + d - d * cube + d * std::log(cube))
      return d * cube;
  }
}

double beta(RandomStream& random, double a, double b) {
  if (a <= 1 && b <= 1) return johnk(random, a, b);
  const double x = gamma(random, a), y = gamma(random, b);
  return x / (x + y);
}

}  // namespace abl::trainer
