// SPDX-License-Identifier: Apache-2.0
#include "statistics/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace abl::statistics {
namespace {

TEST(PermutationTest, ThreeSeedsAgainstThreeAreNeverBelowOneTenth) {
  EXPECT_DOUBLE_EQ(*permutation_p({1, 2, 3}, {100, 200, 300}), 0.1);
  EXPECT_DOUBLE_EQ(*paired_permutation_p({1, 2, 3}, {100, 200, 300}), 0.25);
}

TEST(PermutationTest, SumsThatDifferByRoundingAreEqual) {
  // of the means of 2 out of 4 those of {0.1, 0.4} and {0.2, 0.3} are equal, but not as doubles are added
  EXPECT_DOUBLE_EQ(*permutation_p({0.1, 0.4}, {0.2, 0.3}), 1);
  EXPECT_DOUBLE_EQ(*permutation_p({1000.1, 1000.4}, {1000.2, 1000.3}), 1);
  EXPECT_DOUBLE_EQ(*paired_permutation_p({0.3, 0.3}, {0.2, 0.4}), 1);
}

TEST(PermutationTest, EqualValuesDoNotDiffer) {
  EXPECT_EQ(permutation_p({5, 5, 5}, {5, 5, 5}), 1.0);
  EXPECT_EQ(paired_permutation_p({5, 5}, {5, 5}), 1.0);
}

TEST(PermutationTest, DoesNotDependOnSideOrUnit) {
  const std::vector<double> a{1, 5, 2, 9}, b{3, 8, 7};
  EXPECT_EQ(permutation_p(a, b), permutation_p(b, a));
  for (const double unit : {1e-300, 1e-12, 1e300}) {
    std::vector<double> x{a}, y{b};
    for (double& value : x) value *= unit;
    for (double& value : y) value *= unit;
    EXPECT_EQ(permutation_p(x, y), permutation_p(a, b)) << unit;
  }
}

TEST(PermutationTest, NeedsTwoFiniteValuesOnASideAndFewTogether) {
  EXPECT_FALSE(permutation_p({1}, {2, 3}));
  EXPECT_FALSE(permutation_p({}, {}));
  EXPECT_FALSE(permutation_p({1, std::nan("")}, {2, 3}));
  EXPECT_FALSE(permutation_p({1, 2}, {2, std::numeric_limits<double>::infinity()}));
  EXPECT_TRUE(permutation_p(std::vector<double>(12, 1), std::vector<double>(12, 2)));
  EXPECT_FALSE(permutation_p(std::vector<double>(12, 1), std::vector<double>(13, 2)));
  EXPECT_FALSE(paired_permutation_p({1, 2}, {1, 2, 3}));
  EXPECT_FALSE(paired_permutation_p({1}, {2}));
  EXPECT_FALSE(paired_permutation_p({1, std::nan("")}, {2, 3}));
  EXPECT_FALSE(paired_permutation_p(std::vector<double>(25, 1), std::vector<double>(25, 2)));
}

}  // namespace
}  // namespace abl::statistics
