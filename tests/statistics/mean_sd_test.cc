// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_sd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace abl::statistics {
namespace {

TEST(MeanSdTest, SameValuesInTheSameOrderGiveTheSameBits) {
  const std::vector<double> values{0.1, 0.2, 0.3};
  EXPECT_EQ(mean_sd(values).mean, (0.1 + 0.2 + 0.3) / 3);
  EXPECT_EQ(mean_sd(values).sd, mean_sd(values).sd);
  EXPECT_EQ(mean_sd({5.0, 5.0}).sd, 0.0);
  EXPECT_NEAR(*mean_sd({1e9 + 1, 1e9 + 2, 1e9 + 3}).sd, 1.0, 1e-12) << "two passes: no cancellation";
}

TEST(MeanSdTest, ScalingOfTheDeviationsChangesNoBit) {
  std::mt19937_64 random{2};
  for (int i = 0; i < 1000; ++i) {
    std::lognormal_distribution<double> values{std::uniform_real_distribution<double>{-50, 50}(random), 2};
    const std::vector<double> x{values(random), values(random), values(random), values(random)};
    const double mean = mean_sd(x).mean;
    double squares = 0;
    for (const double value : x) squares += (value - mean) * (value - mean);
    EXPECT_EQ(*mean_sd(x).sd, std::sqrt(squares / 3));
  }
}

}  // namespace
}  // namespace abl::statistics
