// SPDX-License-Identifier: Apache-2.0
#include "statistics/welch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace abl::statistics {
namespace {

struct Case {
  std::vector<double> a, b;
  double t, df, p;
};

// python3 -c "from scipy.stats import ttest_ind; r = ttest_ind(A, B, equal_var=False);
//             print(repr(r.statistic), repr(r.df), repr(r.pvalue))"   with SciPy 1.17.1
const Case kScipy[] = {
    {{79.79, 79.91, 79.66},
     {78.55, 78.40, 78.71},
     10.725764159570549,
     3.8283216320042963,
     0.0005382399337606049},
    {{61.13, 62.0}, {61.5, 61.9, 60.8, 62.4}, -0.1543181832570054, 2.2925211243680272, 0.8898964589782973},
    {{1, 2, 3, 4}, {1.5, 2.5, 3.5, 4.6}, -0.5664652260218807, 5.9946648275816665, 0.5916374512163213},
    {{5, 5, 5}, {4.0, 4.1, 4.2}, 15.588457268119871, 2.0, 0.004089996689521385},
    {{1e-10, 1.2e-10, 1.1e-10}, {2e-10, 2.5e-10, 2.1e-10}, -6.736096792653738, 2.56, 0.010821871285057525},
    {{0.5, 0.6}, {0.5, 0.6}, 0, 2, 1},
};

TEST(WelchTest, IsThatOfScipy) {
  for (const Case& c : kScipy) {
    const auto test = welch_test(c.a, c.b);
    ASSERT_TRUE(test);
    EXPECT_NEAR(test->t, c.t, 1e-8 * std::abs(c.t));
    EXPECT_NEAR(test->df, c.df, 1e-8 * c.df);
    EXPECT_NEAR(test->p, c.p, 1e-8 * c.p);
    EXPECT_DOUBLE_EQ(welch_test(c.b, c.a)->p, test->p) << "two-sided";
  }
}

TEST(WelchTest, NeedsTwoValuesOnBothSides) {
  EXPECT_FALSE(welch_test({1}, {2, 3}));
  EXPECT_FALSE(welch_test({1, 2}, {3}));
  EXPECT_FALSE(welch_test({}, {}));
}

TEST(WelchTest, NeedsSpreadOnOneSide) {
  EXPECT_FALSE(welch_test({1, 1, 1}, {2, 2, 2}));
  EXPECT_FALSE(welch_test({0.1, 0.1, 0.1}, {0.7, 0.7, 0.7})) << "rounding is no spread";
}

TEST(WelchTest, NeedsFiniteValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(welch_test({1, std::nan("")}, {2, 3}));
  EXPECT_FALSE(welch_test({1, 2}, {2, infinity}));
  EXPECT_FALSE(welch_test({1.7e308, -1.7e308}, {2, 3})) << "their deviation is none";
}

}  // namespace
}  // namespace abl::statistics
