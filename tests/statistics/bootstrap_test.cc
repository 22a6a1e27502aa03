// SPDX-License-Identifier: Apache-2.0
#include "statistics/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

const std::vector<double> kValues{79.79, 79.91, 79.66, 79.70, 80.1};

TEST(BootstrapTest, TheSameSeedGivesTheSameBits) {
  for (const Bootstrap kind : {Bootstrap::kBca, Bootstrap::kPercentile}) {
    const auto one = bootstrap_interval(kValues, {.kind = kind, .seed = 7});
    const auto same = bootstrap_interval(kValues, {.kind = kind, .seed = 7});
    EXPECT_EQ(one->low, same->low);
    EXPECT_EQ(one->high, same->high);
  }
}

TEST(BootstrapTest, BoundsAreWithinTheValues) {
  const auto interval = bootstrap_interval(kValues);
  EXPECT_GE(interval->low, 79.66);
  EXPECT_LE(interval->high, 80.1);
  EXPECT_LT(interval->low, 79.832);
  EXPECT_GT(interval->high, 79.832);
}

TEST(BootstrapTest, ResamplesThatEqualTheSampleButForRoundingAreEqualToIt) {
  // in units that doubles have exactly, and in tenths, which they have not
  const auto exact = bootstrap_interval({1, 2, 4}), rounded = bootstrap_interval({0.1, 0.2, 0.4});
  EXPECT_NEAR(exact->low, 10 * rounded->low, 1e-12);
  EXPECT_NEAR(exact->high, 10 * rounded->high, 1e-12);
}

TEST(BootstrapTest, HasNoUnit) {
  const auto interval = bootstrap_interval({1, 2, 4, 9});
  for (const double unit : {0x1p-1000, 0x1p-600, 0x1p600, 0x1p1000})
    EXPECT_EQ(bootstrap_interval({1 * unit, 2 * unit, 4 * unit, 9 * unit})->low, interval->low * unit);
}

TEST(BootstrapTest, NeedsTwoFiniteValuesWithSpread) {
  for (const Bootstrap kind : {Bootstrap::kBca, Bootstrap::kPercentile}) {
    EXPECT_FALSE(bootstrap_interval({}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval({1}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval({0.1, 0.1, 0.1}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval({1, std::nan("")}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval({1, std::numeric_limits<double>::infinity()}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval_of_difference({1, 1}, {2, 2}, {.kind = kind}));
    EXPECT_FALSE(bootstrap_interval_of_difference({1, 2}, {2}, {.kind = kind}));
    EXPECT_TRUE(bootstrap_interval_of_difference({1, 2, 3}, {2, 2}, {.kind = kind}));
  }
}

TEST(BootstrapTest, AnIntervalOfNoWidthIsNotKnown) {
  EXPECT_FALSE(bootstrap_interval({1, 2, 4}, {.kind = Bootstrap::kPercentile, .resamples = 1}));
  EXPECT_FALSE(bootstrap_interval({1, 2, 4}, {.resamples = 1}));
}

TEST(BootstrapTest, OptionsAreChecked) {
  EXPECT_THROW(bootstrap_interval(kValues, {.level = 1}), Error);
  EXPECT_THROW(bootstrap_interval(kValues, {.resamples = 0}), Error);
}

}  // namespace
}  // namespace abl::statistics
