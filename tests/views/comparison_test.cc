// SPDX-License-Identifier: Apache-2.0
#include "views/comparison.h"

#include "views/compared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_EQ(of(table, 1).why(),
            "Welch's t-test over n = 3 and 3 seeds, two-sided: p = 0.00054; corrected for 2 tests (Holm): p "
            "= 0.00067");
  EXPECT_EQ(of(table, 1).family(), 2u);
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
  EXPECT_TRUE(of(table, 1).best() && of(table, 2).best()) << "other runs with the same values";
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
  EXPECT_TRUE(of(close, 1).best());
  EXPECT_EQ(of(close, 1).best_why(), "the best mean of its column; row c is not told from it");
  EXPECT_TRUE(of(close, 2).best()) << "ties share it";
  EXPECT_EQ(of(close, 2).best_why(), "among the best of its column: not told from row b");
  EXPECT_TRUE(of(close, 0).second());
}

TEST(Comparison, WhereNoRowDiffersFromTheBestNobodyIs) {
  const auto table = table_of({{78.5, 78.6, 78.4}, {78.6, 78.7, 78.5}, {78.4, 78.6, 78.5}});
  for (int row = 0; row < 3; ++row) EXPECT_FALSE(of(table, row).best() || of(table, row).second()) << row;
  EXPECT_THAT(of(table, 1).best_why(),
              HasSubstr("the best mean, but no significant difference from row a: p = "));
}

TEST(Comparison, TheSecondIsTheBestOfThoseThatDifferFromTheBest) {
  const auto table = table_of(
      {{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {79.1, 79.2, 79.15}, {79.12, 79.22, 79.1}, {70, 70.1, 70.2}});
  EXPECT_TRUE(of(table, 1).best());
  for (const int second : {2, 3}) {
    EXPECT_TRUE(of(table, second).second()) << second << " shares it";
    EXPECT_FALSE(of(table, second).best());
  }
  EXPECT_FALSE(of(table, 0).second());
  EXPECT_FALSE(of(table, 4).second());
  EXPECT_FALSE(of(table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}}), 0).second()) << "of two rows none is";
  const auto lower = table_of({{3, 3.1, 2.9}, {1, 1.1, 0.9}, {2, 2.1, 1.9}}, "lower");
  EXPECT_TRUE(of(lower, 1).best());
  EXPECT_TRUE(of(lower, 2).second());
}

TEST(Comparison, ARowThatCannotBeTestedHasNoPlace) {
  const auto leads = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {99}});
  EXPECT_FALSE(of(leads, 1).best() || of(leads, 2).best())
      << "nobody knows how far one seed would come again";
  EXPECT_THAT(of(leads, 2).best_why(), HasSubstr("n = 1 and 3: a test needs two seeds on both sides"));
  const auto follows = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {79.75}});
  EXPECT_TRUE(of(follows, 1).best());
  EXPECT_THAT(of(follows, 1).best_why(), HasSubstr("without row c, which cannot be tested"));
  EXPECT_FALSE(of(follows, 2).best() || of(follows, 2).second());
}

/// 20 rows of noise around one mean, the first is the baseline; a last row that differs.
std::vector<std::vector<double>> noise() {
  std::vector<std::vector<double>> rows;
  for (int row = 0; row < 20; ++row) {
    auto& values = rows.emplace_back();
    for (int seed = 0; seed < 3; ++seed) values.push_back(std::sin(12.9898 * (3 * row + seed) + 78.233));
  }
  rows.push_back({9, 9.1, 8.9});
  return rows;
}

TEST(Comparison, AVerdictIsOfTheCorrectedPOfItsColumn) {
  const auto table = table_of(noise());
  std::vector<std::pair<double, double>> tests;  // p, corrected
  for (int row = 1; row < table.rows_size(); ++row) {
    const auto& cell = table.rows(row).cells(0);
    tests.emplace_back(cell.p(), cell.p_corrected());
    EXPECT_EQ(cell.comparison().family(), 20u);
    EXPECT_EQ(cell.comparison().verdict() != v1::Comparison::VERDICT_NOT_TOLD_APART,
              cell.p_corrected() < 0.05);
  }
  std::ranges::sort(tests);
  EXPECT_DOUBLE_EQ(tests[0].second, 20 * tests[0].first) << "Holm's";
  EXPECT_DOUBLE_EQ(tests[1].second, std::min(1.0, 19 * tests[1].first));
  auto plain = table_of(noise());
  plain.mutable_compare()->set_correction("none");
  compare_cells(plain);
  for (int row = 1; row < plain.rows_size(); ++row)
    EXPECT_EQ(plain.rows(row).cells(0).p_corrected(), plain.rows(row).cells(0).p());
  EXPECT_THAT(plain.compare().legend(), HasSubstr("not corrected"));
}

TEST(Comparison, WhatCannotBeTestedIsNotCounted) {
  const auto table =
      table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {80}, {1, kNaN, 2}, {79.0, 79.1, 78.9}, {}});
  for (const int row : {1, 4}) EXPECT_EQ(of(table, row).family(), 2u);
  for (const int row : {2, 3, 5}) {
    EXPECT_FALSE(table.rows(row).cells(0).has_p_corrected());
    EXPECT_EQ(of(table, row).family(), 0u);
  }
}

TEST(Comparison, RowsOfTheSameRunsAreOneTest) {
  auto table = table_of({{78.5, 78.6, 78.4}, {79.0, 79.1, 78.9}, {0}, {0}});
  *table.mutable_rows(2)->mutable_cells(0) = table.rows(1).cells(0);
  *table.mutable_rows(3)->mutable_cells(0) = table.rows(0).cells(0);
  compare_cells(table);
  for (const int row : {1, 2}) EXPECT_EQ(of(table, row).family(), 1u);
  EXPECT_EQ(table.rows(2).cells(0).p_corrected(), table.rows(1).cells(0).p());
  EXPECT_EQ(of(table, 3).why(), "the same runs as the baseline's");
}

TEST(Comparison, EachRowIsComparedWithItsOwnBaseline) {
  auto table = table_of({{78.5, 78.6, 78.4}, {79.8, 79.9, 79.7}, {70.0, 70.1, 69.9}, {70.05, 70.1, 69.95}});
  table.clear_baseline();
  for (int row = 0; row < 4; ++row) {
    table.mutable_rows(row)->set_baseline(row < 2 ? "a" : "c");
    table.mutable_rows(row)->mutable_cells(0)->clear_comparison();
    table.mutable_rows(row)->mutable_cells(0)->clear_p();
  }
  compare_cells(table);
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_EQ(of(table, 2).verdict(), v1::Comparison::VERDICT_UNSPECIFIED) << "a baseline";
  EXPECT_EQ(of(table, 3).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
  EXPECT_EQ(of(table, 3).family(), 2u) << "one family over all groups of a column";
  table.mutable_rows(3)->set_baseline("gone");
  table.mutable_rows(3)->mutable_cells(0)->clear_comparison();
  compare_cells(table);
  EXPECT_EQ(of(table, 3).verdict(), v1::Comparison::VERDICT_UNSPECIFIED) << "there is no such row";
}

TEST(Comparison, PairsAreOfOneSeed) {
  auto table = table_of({{78.0, 80.0, 82.0, 84.0}, {78.5, 80.4, 82.6, 84.5}});
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART) << "the spread of seeds hides it";
  table.mutable_compare()->set_test("paired");
  compare_cells(table);
  EXPECT_EQ(of(table, 1).verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_NEAR(table.rows(1).cells(0).p(), 0.00117222, 1e-7);
  table.mutable_rows(1)->mutable_cells(0)->mutable_runs(3)->set_seed(7);
  compare_cells(table);
  EXPECT_THAT(of(table, 1).why(),
              HasSubstr("over 3 seeds that both rows have (seeds 3, 7 without a pair left out)"));
  for (int run = 1; run < 4; ++run)
    table.mutable_rows(1)->mutable_cells(0)->mutable_runs(run)->set_seed(10 + run);
  compare_cells(table);
  EXPECT_EQ(of(table, 1).why(), "1 seed on both sides: a paired test needs two");
}

TEST(Comparison, APermutationTestIsExact) {
  auto table = table_of({{1, 2, 3}, {4, 5, 6}, {1, 1, 1}});
  table.mutable_compare()->set_test("permutation");
  StatisticsMemo memo;
  for (int times = 0; times < 2; ++times) {
    compare_cells(table, &memo);
    EXPECT_DOUBLE_EQ(table.rows(1).cells(0).p(), 0.1) << "2 of 20 ways";
    EXPECT_THAT(of(table, 1).why(), HasSubstr("permutation test over n = 3 and 3 seeds"));
  }
}

TEST(Comparison, TheBestOfARunThatDivergedNeverWins) {
  auto table = table_of({{78.5, 78.6, 78.4}, {90.0, 90.5, 91.0}, {79.8, 79.9, 79.7}});
  for (auto& row : *table.mutable_rows()) row.mutable_cells(0)->clear_comparison();
  table.mutable_rows(1)->mutable_cells(0)->add_diverged(2);
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
