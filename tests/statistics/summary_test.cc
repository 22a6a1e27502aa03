// SPDX-License-Identifier: Apache-2.0
#include "statistics/summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace abl::statistics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(SummaryTest, OneSeedHasNoDeviation) {
  const auto summary = summarise({79.5});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->n, 1);
  EXPECT_EQ(summary->mean, 79.5);
  EXPECT_FALSE(summary->sd);
  EXPECT_FALSE(summary->standard_error);
}

TEST(SummaryTest, EqualValuesHaveADeviationOfNothingButZero) {
  EXPECT_EQ(summarise({0.1, 0.1, 0.1})->sd, 0.0) << "whatever rounding makes of the mean";
  EXPECT_EQ(summarise({0.1, 0.1, 0.1})->standard_error, 0.0);
}

TEST(SummaryTest, WithoutAFiniteValueNothingIsKnown) {
  EXPECT_FALSE(summarise({}));
  EXPECT_FALSE(summarise({1, std::nan(""), 2}));
  EXPECT_FALSE(summarise({1, kInfinity}));
  EXPECT_FALSE(summarise({-kInfinity, kInfinity}));
  EXPECT_FALSE(summarise({1.7e308, 1.7e308})) << "the sum is too large";
  EXPECT_FALSE(summarise({1.7e308, -1.7e308})->sd) << "the deviation is too large";
}

TEST(SummaryTest, TinyAndHugeValuesKeepTheirDeviation) {
  for (const double unit : {1e-300, 1e-170, 1e-155, 1.0, 1e155, 1e300})
    EXPECT_NEAR(*summarise({unit, 2 * unit, 3 * unit})->sd / unit, 1, 1e-12) << unit;
  EXPECT_EQ(*summarise({5e-324, 5e-324, 5e-324})->sd, 0);
}

TEST(SummaryTest, PooledDeviationNeedsSpreadOnOneSide) {
  EXPECT_NEAR(*pooled_sd({1, 2, 3}, {5, 5, 5}), std::sqrt(0.5), 1e-15);
  EXPECT_FALSE(pooled_sd({1, 1}, {2, 2}));
  EXPECT_FALSE(pooled_sd({1, 2, 3}, {5}));
  EXPECT_FALSE(pooled_sd({1, 2}, {1, kInfinity}));
}

}  // namespace
}  // namespace abl::statistics
