// SPDX-License-Identifier: Apache-2.0
#include "views/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using testing::HasSubstr;

const double kNaN = std::nan("");

/// One metric column, `better`, with the values of each row's seeds; the first row is the baseline.
v1::Table table_of(const std::vector<std::vector<double>>& rows, const char* better = "higher") {
  v1::Table table;
  table.set_baseline("a");
  v1::Column& column = *table.add_columns();
  column.set_kind(v1::Column::KIND_METRIC);
  column.set_better(better);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    v1::TableRow& row = *table.add_rows();
    row.set_id(std::string(1, static_cast<char>('a' + i)));
    v1::Cell& cell = *row.add_cells();
    cell.set_n(static_cast<std::uint32_t>(rows[i].size()));
    double sum = 0;
    for (std::size_t seed = 0; seed < rows[i].size(); ++seed) {
      cell.add_runs()->set_value(rows[i][seed]);
      cell.mutable_runs()->rbegin()->set_seed(static_cast<std::int64_t>(seed));
      cell.mutable_runs()->rbegin()->set_run(static_cast<std::uint32_t>(100 * i + seed + 1));
      sum += rows[i][seed];
    }
    if (!rows[i].empty()) cell.set_mean(sum / static_cast<double>(rows[i].size()));
  }
  compare_cells(table);
  return table;
}

const v1::Comparison& of(const v1::Table& table, int row) { return table.rows(row).cells(0).comparison(); }

TEST(Comparison, ADifferenceBeyondTheSpreadHasAVerdict) {
  const auto table = table_of({{78.55, 78.40, 78.71}, {79.79, 79.91, 79.66}, {77.0, 77.1, 76.9}});
  EXPECT_EQ(of(table, 0).verdict(), v1::Comparison::VERDICT_UNSPECIFIED) << "the baseline itself";
  EXPECT_FALSE(table.rows(0).cells(0).has_p());
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_NEAR(table.rows(1).cells(0).p(), 0.000538239934, 1e-9);
  EXPECT_EQ(of(table, 1).why(), "Welch's t-test over n = 3 and 3 seeds, two-sided: p = 0.00054");
  EXPECT_EQ(of(table, 2).verdict(), v1::Comparison::VERDICT_WORSE);
}

TEST(Comparison, TheColumnSaysWhichSideIsBetter) {
  EXPECT_EQ(of(table_of({{1.0, 1.1, 0.9}, {2.0, 2.1, 1.9}}, "lower"), 1).verdict(),
            v1::Comparison::VERDICT_WORSE);
  EXPECT_EQ(of(table_of({{1.0, 1.1, 0.9}, {2.0, 2.1, 1.9}}, "none"), 1).verdict(),
            v1::Comparison::VERDICT_DIFFERENT);
}

TEST(Comparison, ADifferenceWithinTheSpreadHasNone) {
  const auto table = table_of({{74.10, 70.6, 77.5}, {74.04, 71.0, 77.9}});
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
  EXPECT_THAT(of(table, 1).why(), HasSubstr("not below 0.05"));
  EXPECT_FALSE(of(table, 0).best());
  EXPECT_THAT(of(table, 0).best_why() + of(table, 1).best_why(),
              HasSubstr("no significant difference from row"));
}

TEST(Comparison, OneSeedOrNoSpreadCannotBeTested) {
  const auto one = table_of({{78.5, 78.6}, {90.0}});
  EXPECT_EQ(of(one, 1).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
  EXPECT_EQ(of(one, 1).why(), "n = 1 and 2: a test needs two seeds on both sides");
  EXPECT_FALSE(one.rows(1).cells(0).has_p());
  EXPECT_FALSE(of(one, 1).best());
  const auto same = table_of({{0.6, 0.6, 0.6}, {0.7, 0.7, 0.7}});
  EXPECT_EQ(of(same, 1).why(), "all seeds agree on both sides: no spread for a test");
  EXPECT_FALSE(of(same, 1).best());
}

TEST(Comparison, TheBestMayStandInTheTableTwice) {
  auto table = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {79.8, 79.9, 79.7}});
  EXPECT_FALSE(of(table, 1).best()) << "other runs with the same values";
  for (auto& row : *table.mutable_rows()) row.mutable_cells(0)->clear_comparison();
  *table.mutable_rows(2)->mutable_cells(0) = table.rows(1).cells(0);
  compare_cells(table);
  EXPECT_FALSE(of(table, 0).best());
  EXPECT_TRUE(of(table, 1).best()) << "the same runs";
  EXPECT_TRUE(of(table, 2).best());
}

TEST(Comparison, MeansThatOverflowAreSaidToBeTooLarge) {
  const auto table = table_of({{1.7e308, 1.7e308}, {1, 2}});
  EXPECT_EQ(of(table, 1).why(), "the values are too large for a mean");
}

TEST(Comparison, TheBestDiffersFromEveryOtherRow) {
  const auto clear = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {70.0, 75.0, 72.0}});
  EXPECT_TRUE(of(clear, 1).best());
  EXPECT_THAT(of(clear, 1).best_why(), HasSubstr("every other row differs"));
  EXPECT_FALSE(of(clear, 0).best());
  const auto close = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {79.7, 79.8, 79.75}});
  EXPECT_FALSE(of(close, 1).best());
  EXPECT_THAT(of(close, 1).best_why(),
              HasSubstr("the best mean, but no significant difference from row c: p = "));
}

TEST(Comparison, TheBestOfARunThatDivergedNeverWins) {
  auto table = table_of({{78.5, 78.6, 78.4}, {90.0, 90.5, 91.0}, {79.8, 79.9, 79.7}});
  for (auto& row : *table.mutable_rows()) row.mutable_cells(0)->clear_comparison();
  table.mutable_rows(1)->mutable_cells(0)->mutable_runs(2)->set_not_finite(12);
  compare_cells(table);
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
  EXPECT_EQ(of(table, 1).why(), "seed 2 diverged");
  EXPECT_FALSE(of(table, 1).best());
  EXPECT_TRUE(of(table, 2).best());
}

TEST(Comparison, ADivergedRowNeverWinsAndHoldsNobodyBack) {
  for (const double lost : {kNaN, std::numeric_limits<double>::infinity()}) {
    const auto table = table_of({{78.5, 78.6, 78.4}, {90.0, lost, 91.0}, {79.8, 79.9, 79.7}});
    EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
    EXPECT_EQ(of(table, 1).why(), "seed 1 diverged");
    EXPECT_FALSE(of(table, 1).best());
    EXPECT_TRUE(of(table, 2).best());
  }
  const auto table = table_of({{78.5, kNaN}, {90.0, 91.0}});
  EXPECT_EQ(of(table, 1).why(), "seed 1 of the baseline diverged");
  EXPECT_FALSE(of(table, 1).best()) << "alone it is better than nobody";
}

TEST(Comparison, RowsWithoutValuesAndOtherColumnsAreLeftAlone) {
  auto table = table_of({{78.5, 78.6}, {}});
  EXPECT_FALSE(table.rows(1).cells(0).has_comparison());
  EXPECT_FALSE(of(table, 0).best()) << "alone it is better than nobody";
  table = table_of({{1, 2}, {3, 4}});
  table.mutable_columns(0)->set_kind(v1::Column::KIND_COUNT);
  for (auto& row : *table.mutable_rows()) row.mutable_cells(0)->clear_comparison();
  compare_cells(table);
  EXPECT_FALSE(table.rows(1).cells(0).has_comparison());
}

}  // namespace
}  // namespace abl::views
