// SPDX-License-Identifier: Apache-2.0
#include "statistics/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(IntervalTest, NeedsTwoFiniteValuesWithSpread) {
  EXPECT_FALSE(t_interval({}));
  EXPECT_FALSE(t_interval({1}));
  EXPECT_FALSE(t_interval({2, 2, 2})) << "an interval of no width would say that the next seed is known";
  EXPECT_FALSE(t_interval({1, std::nan("")}));
  EXPECT_FALSE(t_interval({1, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(t_interval({1.7e308, -1.7e308}));
  EXPECT_TRUE(t_interval({1e-300, 2e-300}));
}

TEST(IntervalTest, AHigherLevelIsWider) {
  const auto narrow = t_interval({1, 2, 3}, 0.5), wide = t_interval({1, 2, 3}, 0.999);
  EXPECT_LT(wide->low, narrow->low);
  EXPECT_GT(wide->high, narrow->high);
}

TEST(IntervalTest, ALevelIsBetweenZeroAndOne) {
  for (const double level : {0.0, 1.0, 95.0, -0.5, std::nan("")})
    EXPECT_THROW(t_interval({1, 2}, level), Error) << level;
}

}  // namespace
}  // namespace abl::statistics
