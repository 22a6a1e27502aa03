// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// Gamma(shape, 1), shape > 0: rejection from the cube of a shifted normal; below 1 a draw of shape + 1 times
/// U^(1/shape). Exact. Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
double gamma(RandomStream& random, double shape);

/// Beta(a, b), a and b > 0, in [0, 1]. Exact: Jöhnk's method where both are at most 1 (its acceptance is high
/// there, and small parameters do not underflow), otherwise the ratio of two gamma draws.
double beta(RandomStream& random, double a, double b);

}  // namespace abl::trainer
