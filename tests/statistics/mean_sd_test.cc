// SPDX-License-Identifier: Apache-2.0
#include "statistics/mean_sd.h"

#include <gtest/gtest.h>

namespace abl::statistics {
namespace {

TEST(MeanSdTest, SameValuesInTheSameOrderGiveTheSameBits) {
  const std::vector<double> values{0.1, 0.2, 0.3};
  EXPECT_EQ(mean_sd(values).mean, (0.1 + 0.2 + 0.3) / 3);
  EXPECT_EQ(mean_sd(values).sd, mean_sd(values).sd);
  EXPECT_EQ(mean_sd({5.0, 5.0}).sd, 0.0);
  EXPECT_NEAR(*mean_sd({1e9 + 1, 1e9 + 2, 1e9 + 3}).sd, 1.0, 1e-12) << "two passes: no cancellation";
}

}  // namespace
}  // namespace abl::statistics
