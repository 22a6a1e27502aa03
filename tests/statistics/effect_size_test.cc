// SPDX-License-Identifier: Apache-2.0
#include "statistics/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(EffectSizeTest, ChangesItsSignWithTheSides) {
  const std::vector<double> a{1, 2, 4}, b{3, 5, 6, 8};
  const auto one = hedges_g(a, b), other = hedges_g(b, a);
  EXPECT_DOUBLE_EQ(one->g, -other->g);
  EXPECT_NEAR(one->interval->low, -other->interval->high, 1e-9);
  EXPECT_NEAR(one->interval->high, -other->interval->low, 1e-9);
}

TEST(EffectSizeTest, HasNoUnit) {
  for (const double unit : {1e-200, 1e-9, 1e9, 1e200})
    EXPECT_NEAR(hedges_g({1 * unit, 2 * unit, 4 * unit}, {3 * unit, 5 * unit})->g,
                hedges_g({1, 2, 4}, {3, 5})->g, 1e-12);
}

TEST(EffectSizeTest, OfARowFarBeyondItsSpreadTheIntervalGrowsInProportion) {
  const auto ratio = [](double far) {
    const auto effect = hedges_g({far, far + 2, far + 4}, {0, 1, 2});
    return std::pair{effect->interval->low / effect->g, effect->interval->high / effect->g};
  };
  const auto limit = ratio(1e7);
  for (const double far : {30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6, 1e9, 1e12}) {
    EXPECT_NEAR(ratio(far).first, limit.first, 10 / far) << far;
    EXPECT_NEAR(ratio(far).second, limit.second, 10 / far) << far;
  }
}

TEST(EffectSizeTest, NeedsSpreadAndTwoValuesOnBothSides) {
  EXPECT_FALSE(hedges_g({1}, {2, 3, 4}));
  EXPECT_FALSE(hedges_g({}, {}));
  EXPECT_FALSE(hedges_g({1, 1}, {2, 2}));
  EXPECT_FALSE(hedges_g({1, std::nan("")}, {2, 3}));
  EXPECT_FALSE(hedges_g({1, 2}, {2, std::numeric_limits<double>::infinity()}));
  EXPECT_THROW(hedges_g({1, 2}, {2, 3}, 0), Error);
}

}  // namespace
}  // namespace abl::statistics
