// SPDX-License-Identifier: Apache-2.0
#include "statistics/paired_t.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace abl::statistics {
namespace {

TEST(PairedTTest, SeesADifferenceThatSeedsHideFromWelch) {
  const auto test = paired_t_test({80.1, 79.2, 81.3}, {79.9, 78.9, 81.1});
  ASSERT_TRUE(test);
  EXPECT_LT(test->p, 0.05);
  EXPECT_NEAR(test->difference, 0.7 / 3, 1e-13);
}

TEST(PairedTTest, NeedsPairsWhoseDifferencesVary) {
  EXPECT_FALSE(paired_t_test({1, 2, 3}, {1, 2}));
  EXPECT_FALSE(paired_t_test({}, {}));
  EXPECT_FALSE(paired_t_test({1}, {2}));
  EXPECT_FALSE(paired_t_test({1, 2, 3}, {1, 2, 3}));
  EXPECT_FALSE(paired_t_test({0.2, 0.3, 0.4}, {0.1, 0.2, 0.3})) << "rounding is no spread";
  EXPECT_FALSE(paired_t_test({1, std::nan("")}, {2, 3}));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(paired_t_test({1, infinity}, {2, infinity}));
}

}  // namespace
}  // namespace abl::statistics
