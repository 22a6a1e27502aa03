// SPDX-License-Identifier: Apache-2.0
#include "statistics/anova.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::statistics {
namespace {

const std::vector<FactorCell> kCells{
    {{0, 0}, {1.0, 1.2, 0.9}}, {{0, 1}, {2.0, 2.1}}, {{1, 0}, {1.5, 1.4}}, {{1, 1}, {4.0, 4.2, 4.1}}};

TEST(AnovaTest, ABalancedLayoutAddsUp) {
  std::vector<FactorCell> cells;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < 2; ++b)
      cells.push_back({{a, b}, {static_cast<double>(a * a + b), static_cast<double>(3 * a * b) + 0.5}});
  const auto result = anova(cells);
  ASSERT_TRUE(result);
  double shares = result->residual / result->total;
  for (const Effect& effect : result->effects) shares += effect.eta_squared;
  EXPECT_NEAR(shares, 1, 1e-12);
}

TEST(AnovaTest, DoesNotDependOnUnitOrderOrNamesOfLevels) {
  const auto result = anova(kCells);
  std::vector<FactorCell> other{{{7, 3}, {4.0, 4.2, 4.1}},
                                {{9, 3}, {2.1, 2.0}},
                                {{5, 5}, {}},
                                {{7, 0}, {1.4, 1.5}},
                                {{9, 0}, {1.2, 0.9, 1.0}}};
  for (FactorCell& cell : other)
    for (double& value : cell.values) value *= 1e-100;
  const auto same = anova(other);
  ASSERT_TRUE(same);
  for (std::size_t i = 0; i < result->effects.size(); ++i) {
    EXPECT_EQ(same->effects[i].factors, result->effects[i].factors);
    EXPECT_NEAR(*same->effects[i].p, *result->effects[i].p, 1e-12);
    EXPECT_NEAR(same->effects[i].eta_squared, result->effects[i].eta_squared, 1e-12);
  }
}

TEST(AnovaTest, OneSeedEachLeavesNothingToTestInteractionsAgainst) {
  const std::vector<FactorCell> cells{{{0, 0}, {1}}, {{0, 1}, {2}}, {{1, 0}, {4}}, {{1, 1}, {8}}};
  const auto with = anova(cells), without = anova(cells, Interactions::kNone);
  EXPECT_EQ(with->residual_df, 0);
  for (const Effect& effect : with->effects) {
    EXPECT_FALSE(effect.f);
    EXPECT_FALSE(effect.p);
    EXPECT_GT(effect.eta_squared, 0);
  }
  EXPECT_TRUE(without->effects[0].p);
}

TEST(AnovaTest, SeedsThatAllAgreeLeaveNothingToTestAgainst) {
  const auto result = anova({{{0}, {0.1, 0.1, 0.1}}, {{1}, {0.7, 0.7}}, {{2}, {0.3, 0.3, 0.3}}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->residual, 0);
  EXPECT_FALSE(result->effects[0].f) << "rounding is no residual";
  EXPECT_NEAR(result->effects[0].eta_squared, 1, 1e-12);
}

TEST(AnovaTest, FactorsThatMoveTogetherAreNotToldApart) {
  const auto result = anova({{{0, 0}, {1, 2}}, {{1, 1}, {3, 4}}, {{2, 2}, {5, 7}}});
  ASSERT_TRUE(result);
  for (const Effect& effect : result->effects) {
    EXPECT_EQ(effect.df, 0);
    EXPECT_EQ(effect.sum_of_squares, 0);
    EXPECT_FALSE(effect.p);
  }
}

TEST(AnovaTest, AFactorWithOneLevelExplainsNothing) {
  const auto result = anova({{{0, 4}, {1, 2}}, {{1, 4}, {3, 4}}});
  EXPECT_EQ(result->effects[1].df, 0);
  EXPECT_FALSE(result->effects[1].f);
  EXPECT_TRUE(result->effects[0].f);
}

TEST(AnovaTest, NeedsFiniteValuesWithSpread) {
  EXPECT_FALSE(anova({}));
  EXPECT_FALSE(anova({{{}, {1, 2}}}));
  EXPECT_FALSE(anova({{{0}, {}}, {{1}, {}}}));
  EXPECT_FALSE(anova({{{0}, {1}}}));
  EXPECT_FALSE(anova({{{0}, {1, 1}}, {{1}, {1, 1}}}));
  EXPECT_FALSE(anova({{{0}, {1, std::nan("")}}, {{1}, {1, 2}}}));
  EXPECT_FALSE(anova({{{0}, {1, std::numeric_limits<double>::infinity()}}, {{1}, {1, 2}}}));
  EXPECT_FALSE(anova({{{0}, {1e6, 1e6}}, {{1}, {std::nextafter(1e6, 2e6), 1e6}}})) << "rounding is no spread";
  EXPECT_FALSE(anova({{{0}, {1e200, 2e200}}, {{1}, {1e200, 3e200}}})) << "sums of squares are too large";
  EXPECT_THROW(anova({{{0}, {1}}, {{0, 1}, {2}}}), Error);
}

}  // namespace
}  // namespace abl::statistics
