// SPDX-License-Identifier: Apache-2.0
#include "statistics/power.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(PowerTest, SaysHowManyMoreSeeds) {
  const std::vector<double> row{79.5, 79.7, 79.9},
      baseline{79.0, 79.2, 79.4};  // both with a deviation of 0.2
  EXPECT_EQ(seeds_to_see(0.3, 0.2), 9);
  EXPECT_EQ(more_seeds_to_see(0.3, row, baseline), 6);
  EXPECT_EQ(more_seeds_to_see(-0.3, row, baseline), 6);
  EXPECT_EQ(more_seeds_to_see(10, row, baseline), 0) << "it is seen already";
}

TEST(PowerTest, PairsNeedFewerSeedsWhereTheirDifferencesAgree) {
  // statsmodels 0.15.0, TTestPower().solve_power
  EXPECT_EQ(pairs_to_see(0.5, 1), 34);
  EXPECT_EQ(pairs_to_see(0.3, 1), 90);
  EXPECT_EQ(pairs_to_see(-1, 1), 10);
  EXPECT_EQ(pairs_to_see(2.5, 1), 4);
  EXPECT_EQ(more_pairs_to_see(0.1, {78.5, 80.4, 82.6}, {78, 80, 82}), 7);
  EXPECT_FALSE(more_pairs_to_see(0.1, {78.5, 80.4}, {78, 80, 82})) << "no pairs";
  EXPECT_FALSE(more_pairs_to_see(0.1, {79, 81}, {78, 80})) << "no spread";
}

TEST(PowerTest, FewestSeedsThatAreEnough) {
  for (const double effect : {0.1, 0.3, 1.0, 1.7, 2.9, 6.0}) {
    for (const double goal : {0.01, 0.2, 0.8, 0.99}) {
      const auto n = seeds_to_see(effect, 1, {.power = goal});
      ASSERT_TRUE(n);
      EXPECT_GE(*power_of_t_test(effect, *n), goal);
      EXPECT_LT(power_of_t_test(effect, *n - 1).value_or(0), goal) << effect;
    }
  }
}

TEST(PowerTest, WhatCannotBeSeenIsNotKnown) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(seeds_to_see(0, 1));
  EXPECT_FALSE(seeds_to_see(1, 0));
  EXPECT_FALSE(seeds_to_see(1, -1));
  EXPECT_FALSE(seeds_to_see(infinity, 1));
  EXPECT_FALSE(seeds_to_see(1, infinity));
  EXPECT_FALSE(seeds_to_see(std::nan(""), 1));
  EXPECT_FALSE(seeds_to_see(0.03, 1)) << "10,000 seeds are too few";
  EXPECT_FALSE(more_seeds_to_see(1, {1}, {1, 2}));
  EXPECT_FALSE(more_seeds_to_see(1, {1, 1}, {2, 2}));
  EXPECT_FALSE(more_seeds_to_see(1, {1, std::nan("")}, {2, 3}));
  EXPECT_FALSE(power_of_t_test(1, 1));
  EXPECT_FALSE(power_of_t_test(infinity, 3));
  EXPECT_EQ(power_of_t_test(1e9, 3), 1.0);
  EXPECT_EQ(seeds_to_see(1e9, 1), 2);
  EXPECT_NEAR(*power_of_t_test(0, 5), 0.05, 1e-12) << "without a difference it is alpha";
}

TEST(PowerTest, GoalsAreBetweenZeroAndOne) {
  EXPECT_THROW(seeds_to_see(1, 1, {.power = 80}), Error);
  EXPECT_THROW(seeds_to_see(1, 1, {.alpha = 0}), Error);
  EXPECT_THROW(power_of_t_test(1, 3, 1), Error);
}

}  // namespace
}  // namespace abl::statistics
