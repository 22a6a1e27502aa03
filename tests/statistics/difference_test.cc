// SPDX-License-Identifier: Apache-2.0
#include "statistics/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

TEST(DifferenceTest, OneSeedHasADifferenceButNoTest) {
  const auto difference = difference_to_baseline({80.5}, {79, 79.5});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->value, 1.25);
  EXPECT_FALSE(difference->test);
  EXPECT_FALSE(difference->interval);
}

TEST(DifferenceTest, SeedsThatAllAgreeHaveADifferenceButNoTest) {
  const auto difference = difference_to_baseline({2, 2}, {1, 1});
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->value, 1);
  EXPECT_FALSE(difference->test);
  EXPECT_FALSE(difference->interval);
}

TEST(DifferenceTest, IntervalExcludesZeroWhereTheTestIsBelowItsAlpha) {
  const std::vector<double> row{79.79, 79.91, 79.66}, baseline{78.55, 78.40, 79.71};
  for (const Pairing pairing : {Pairing::kNone, Pairing::kBySeed}) {
    const double p = difference_to_baseline(row, baseline, pairing)->test->p;
    const auto just_wider = difference_to_baseline(row, baseline, pairing, 1 - 0.999 * p);
    const auto just_narrower = difference_to_baseline(row, baseline, pairing, 1 - 1.001 * p);
    EXPECT_LT(just_wider->interval->low, 0);
    EXPECT_GT(just_narrower->interval->low, 0);
  }
}

TEST(DifferenceTest, NeedsAMeanOnBothSides) {
  EXPECT_FALSE(difference_to_baseline({}, {1, 2}));
  EXPECT_FALSE(difference_to_baseline({1, 2}, {}));
  EXPECT_FALSE(difference_to_baseline({1, std::nan("")}, {1, 2}));
  EXPECT_FALSE(difference_to_baseline({1, 2}, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(difference_to_baseline({1.7e308}, {-1.7e308})) << "the difference is too large";
  EXPECT_FALSE(difference_to_baseline({1, 2, 3}, {1, 2}, Pairing::kBySeed)) << "a seed has no partner";
  EXPECT_THROW(difference_to_baseline({1, 2}, {1, 2}, Pairing::kNone, 2), Error);
}

}  // namespace
}  // namespace abl::statistics
