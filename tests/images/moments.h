// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>

namespace abl::images {

/// Mean and variance of `count` draws against what they should be: each within four standard errors, the
/// variance's for a distribution of the given kurtosis (fourth central moment over variance²; a normal has
/// 3). Streams are seeded, so that a test passes always or never.
template <class Draw>
void expect_moments(double mean, double variance, double kurtosis, int count, Draw draw) {
  double sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) {
    const double off = draw() - mean;  // about the mean that is expected: nothing is lost to cancellation
    sum += off, squares += off * off;
  }
  EXPECT_NEAR(sum / count, 0, 4 * std::sqrt(variance / count)) << "mean " << mean + sum / count;
  EXPECT_NEAR(squares / count, variance, 4 * variance * std::sqrt((kurtosis - 1) / count));
}

/// `hits` of `count` against a probability, within four standard errors.
inline void expect_share(double probability, int hits, int count) {
  EXPECT_NEAR(1.0 * hits / count, probability, 4 * std::sqrt(probability * (1 - probability) / count));
}

}  // namespace abl::images
