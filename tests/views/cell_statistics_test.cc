// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/storage/fixtures.h"
#include "views/compared.h"
#include "views/comparison.h"
#include "views/table_cache.h"
#include "views/views.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::StoreTest;
using storage::sweep_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A table of one metric column, in percent with two digits, of rows a, b …; the first is the baseline.
v1::Table percent_table(const std::vector<std::vector<double>>& rows, const std::string& test = "welch") {
  v1::Table table;
  table.set_baseline("a");
  table.mutable_compare()->set_test(test);
  v1::Column& column = *table.add_columns();
  column.set_name("acc");
  column.set_kind(v1::Column::KIND_METRIC);
  column.set_better("higher");
  column.set_unit("%");
  column.set_digits(2);
  std::uint32_t run = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    v1::TableRow& row = *table.add_rows();
    row.set_id(std::string(1, static_cast<char>('a' + i)));
    v1::Cell& cell = *row.add_cells();
    double sum = 0;
    for (std::size_t seed = 0; seed < rows[i].size(); ++seed) {
      auto& one = *cell.add_runs();
      one.set_run(++run);
      one.set_seed(static_cast<std::int64_t>(seed));
      one.set_value(rows[i][seed]);
      sum += rows[i][seed];
    }
    cell.set_n(static_cast<std::uint32_t>(rows[i].size()));
    if (!rows[i].empty()) cell.set_mean(sum / static_cast<double>(rows[i].size()));
  }
  return table;
}

v1::Table described(v1::Table table) {
  compare_cells(table);
  add_statistics(table);
  return table;
}

const v1::CellStatistics& said_of(const v1::Table& table, int row) {
  return table.rows(row).cells(0).statistics();
}

TEST(CellStatisticsTest, SaysWhatTheSeedsSay) {
  const auto table = described(percent_table({{79.0, 79.2, 79.4}, {79.5, 79.7, 79.9}}));
  const auto& said = said_of(table, 1);
  EXPECT_NEAR(said.standard_error(), 0.2 / std::sqrt(3), 1e-9);
  EXPECT_NEAR(said.interval().low(), 79.7 - 4.3026527 * 0.2 / std::sqrt(3), 1e-6);
  EXPECT_EQ(said.interval_kind(), "t");
  EXPECT_NEAR(said.difference(), 0.5, 1e-9);
  EXPECT_NEAR(said.difference_interval().high(), 0.5 + 2.7764451 * 0.2 * std::sqrt(2.0 / 3), 1e-6);
  EXPECT_EQ(said.difference_interval_kind(), "Welch");
  EXPECT_EQ(said.baseline(), "a");
  EXPECT_NEAR(said.g(), 2.5 * 0.7978845608, 1e-6) << "2.5 deviations, less the bias of six values";
  EXPECT_LT(said.g_interval().low(), said.g());
  EXPECT_FALSE(said.has_more_seeds()) << "the difference is seen";
  EXPECT_THAT(
      said.lines(),
      ElementsAre("3 seeds: mean 79.70, s.d. 0.20, standard error 0.12, 95 % interval 79.20 to 80.20 (t)",
                  "difference to row a: +0.50, 95 % interval +0.05 to +0.95 (Welch)",
                  "Welch's t-test over n = 3 and 3 seeds, two-sided: p = 0.038",
                  HasSubstr("Hedges' g 1.99, 95 % interval ")));
  EXPECT_EQ(said_of(table, 0).baseline(), "") << "the baseline is compared with none";
  EXPECT_EQ(said_of(table, 0).lines_size(), 1);
}

TEST(CellStatisticsTest, SaysHowManySeedsMoreADifferenceNeeds) {
  const std::vector<std::vector<double>> rows{{79.0, 79.2, 79.4}, {79.1, 79.3, 79.5}};
  const auto found = described(percent_table(rows));
  EXPECT_NEAR(said_of(found, 1).to_see(), 0.1, 1e-9);
  EXPECT_EQ(said_of(found, 1).more_seeds(), 61u);
  auto table = percent_table(rows);
  table.mutable_columns(0)->set_see(0.3);
  table = described(table);
  EXPECT_EQ(said_of(table, 1).more_seeds(), 6u);
  EXPECT_THAT(said_of(table, 1).lines(),
              testing::Contains("about 6 more seeds to see 0.30 with a chance of 80 %"));
  table.mutable_columns(0)->set_see(10);
  EXPECT_THAT(said_of(described(table), 1).lines(),
              testing::Contains("enough seeds to see 10.00 with a chance of 80 %"));
}

TEST(CellStatisticsTest, CountsSeedsForTheTestThatIsCorrectedForAllRows) {
  // an effect of half a deviation: 64 seeds at 0.05, 78 at 0.05 / 2 (SciPy's noncentral t)
  const auto table = described(percent_table({{79.0, 79.2, 79.4}, {79.1, 79.3, 79.5}, {79.0, 79.2, 79.5}}));
  EXPECT_EQ(said_of(table, 1).more_seeds(), 75u);
}

TEST(CellStatisticsTest, OneSeedIsOneSeed) {
  const auto table = described(percent_table({{79.0, 79.2}, {79.5}}));
  const auto& said = said_of(table, 1);
  EXPECT_FALSE(said.has_standard_error() || said.has_interval() || said.has_difference_interval() ||
               said.has_g());
  EXPECT_FALSE(table.rows(1).cells(0).has_p());
  EXPECT_EQ(said.why_no_interval(), "one seed");
  EXPECT_NEAR(said.difference(), 0.4, 1e-9);
  EXPECT_THAT(said.lines(), ElementsAre("one seed: mean 79.50, no interval", "difference to row a: +0.40",
                                        "no test: n = 1 and 2: a test needs two seeds on both sides"));
}

TEST(CellStatisticsTest, ARunThatDivergedLeavesNothingToBeSaidOfTheOthers) {
  for (const double lost : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
    const auto table = described(percent_table({{79.0, 79.2}, {79.5, lost}}));
    const auto& said = said_of(table, 1);
    EXPECT_FALSE(said.has_interval() || said.has_difference() || said.has_standard_error());
    EXPECT_EQ(said.why_no_interval(), "seed 1 diverged");
    EXPECT_EQ(said.why_no_test(), "seed 1 diverged");
  }
  auto table = percent_table({{79.0, 79.2}, {79.5, 79.6}});
  table.mutable_rows(1)->mutable_cells(0)->add_diverged(0);
  table = described(table);
  EXPECT_FALSE(said_of(table, 1).has_interval()) << "its best value is of what was finite";
  EXPECT_EQ(said_of(table, 1).why_no_interval(), "seed 0 diverged");
}

TEST(CellStatisticsTest, EqualValuesHaveNoInterval) {
  const auto table = described(percent_table({{79.0, 79.0}, {80.0, 80.0}, {81, 82}}));
  EXPECT_EQ(said_of(table, 1).standard_error(), 0);
  EXPECT_EQ(said_of(table, 1).why_no_interval(), "all seeds gave the same value");
  EXPECT_EQ(said_of(table, 1).why_no_test(), "all seeds agree on both sides: no spread for a test");
  EXPECT_TRUE(said_of(table, 2).has_difference_interval()) << "one side's spread is enough for Welch's test";
}

TEST(CellStatisticsTest, APairedTestIsOfTheSeedsThatBothHave) {
  auto table = percent_table({{78.0, 80.0, 82.0, 84.0}, {78.5, 80.4, 82.6}}, "paired");
  table.mutable_columns(0)->set_see(0.1);
  table = described(table);
  const auto& said = said_of(table, 1);
  EXPECT_EQ(said.compared(), 3u);
  EXPECT_EQ(said.baseline_compared(), 3u);
  EXPECT_THAT(said.unpaired(), ElementsAre(3));
  EXPECT_NEAR(said.difference(), 0.5, 1e-9) << "of the pairs, not of the means";
  EXPECT_EQ(said.difference_interval_kind(), "paired t");
  EXPECT_NEAR(said.difference_interval().low(), 0.5 - 4.3026527 * 0.1 / std::sqrt(3), 1e-6);
  EXPECT_EQ(said.more_seeds(), 7u) << "10 pairs, by the deviation of the differences";
  EXPECT_THAT(said.lines(), testing::Contains(HasSubstr("(seed 3 without a pair left out)")));
}

TEST(CellStatisticsTest, ABootstrapIsTheSameEveryTime) {
  auto table = percent_table({{79.0, 79.2, 79.4, 79.1, 79.6}, {79.5, 79.7, 79.9, 80.3, 79.8}});
  table.mutable_compare()->set_interval("bootstrap");
  const auto first = described(table), second = described(table);
  EXPECT_EQ(said_of(first, 1).SerializeAsString(), said_of(second, 1).SerializeAsString());
  EXPECT_EQ(said_of(first, 1).interval_kind(), "bootstrap");
  EXPECT_EQ(said_of(first, 1).difference_interval_kind(), "bootstrap");
  EXPECT_GT(said_of(first, 1).interval().low(), 79.5);
}

TEST(CellStatisticsTest, UnitsApplyToTextsAlone) {
  auto table = percent_table({{1.0e9, 1.2e9}, {2.0e9, 2.2e9}});
  table.mutable_columns(0)->set_unit("G");
  table.mutable_columns(0)->set_see(0.5);
  table = described(table);
  EXPECT_NEAR(said_of(table, 1).difference(), 1e9, 1);
  EXPECT_NEAR(said_of(table, 1).to_see(), 0.5e9, 1);
  EXPECT_THAT(said_of(table, 1).lines(1), HasSubstr("difference to row a: +1.00"));
}

TEST(CellStatisticsTest, WhatRoundsToZeroHasNoSign) {
  const auto table = described(
      percent_table({{80.0, 80.2}, {80.001, 80.201}, {79.999, 80.199}, {80.0, 80.2}, {79.99, 80.19}}));
  for (const int row : {1, 2, 3})
    EXPECT_THAT(said_of(table, row).lines(1), HasSubstr("difference to row a: ±0.00")) << row;
  EXPECT_THAT(said_of(table, 4).lines(1), HasSubstr("difference to row a: -0.01"));
  v1::Cell cell;
  EXPECT_EQ(bound_text(table.columns(0), cell, -0.001), "-0.00") << "an end of an interval lies below zero";
  EXPECT_EQ(bound_text(table.columns(0), cell, 0.001), "+0.00");
}

TEST(PaperAgreementTest, ComparesOrdersAndSigns) {
  auto table = percent_table({{60, 61}, {70, 71}, {80, 81}, {65, 66}, {50, 51}, {1, 2}});
  table.mutable_columns(0)->set_has_paper(true);
  const std::vector<std::string> printed{"61.1", "70.2 ± 0.1", "79.79", "72.0%", "–", "50/51"};
  for (int row = 0; row < 6; ++row)
    table.mutable_rows(row)->mutable_cells(0)->set_paper(printed[static_cast<std::size_t>(row)]);
  compare_cells(table);
  ASSERT_EQ(table.paper_agreement_size(), 1);
  const auto& said = table.paper_agreement(0);
  EXPECT_EQ(said.rows(), 4u) << "what is no number is not compared";
  EXPECT_NEAR(said.tau(), 4.0 / 6, 1e-12) << "rows b and d stand the other way round";
  EXPECT_EQ(said.why(), "4 rows: an interval needs five");
  EXPECT_EQ(said.signs(), 3u);
  EXPECT_EQ(said.same_signs(), 3u);
}

TEST(FactorAnalysisTest, RowsOfFactorsAreAnalysed) {
  auto table = percent_table({{1, 1.1}, {2, 2.1}, {3, 3.1}, {4.5, 4.6}});
  const std::vector<std::string> ids{"lr=0.1,name=sgd", "lr=0.1,name=adam", "lr=0.2,name=sgd",
                                     "lr=0.2,name=adam"};
  for (int row = 0; row < 4; ++row) table.mutable_rows(row)->set_id(ids[static_cast<std::size_t>(row)]);
  compare_cells(table);
  ASSERT_EQ(table.factor_analyses_size(), 1);
  const auto& said = table.factor_analyses(0);
  EXPECT_EQ(said.why(), "");
  ASSERT_EQ(said.effects_size(), 3);
  EXPECT_THAT(said.effects(0).factors(), ElementsAre("lr"));
  EXPECT_THAT(said.effects(2).factors(), ElementsAre("lr", "name"));
  EXPECT_EQ(said.residual_df(), 4u);
  EXPECT_GT(said.effects(0).eta_squared(), said.effects(1).eta_squared());
  EXPECT_LT(said.effects(0).omega_squared(), said.effects(0).eta_squared());
  table.mutable_rows(3)->set_id("best");
  compare_cells(table);
  EXPECT_EQ(table.factor_analyses_size(), 0) << "rows with names of their own";
}

TEST(FactorAnalysisTest, FactorsThatVaryTogetherAreOne) {
  auto table = percent_table({{1, 1.1}, {2, 2.1}, {3, 3.1}});
  const std::vector<std::string> ids{"lr=0.1,warmup=5", "lr=0.2,warmup=10", "lr=0.3,warmup=20"};
  for (int row = 0; row < 3; ++row) table.mutable_rows(row)->set_id(ids[static_cast<std::size_t>(row)]);
  compare_cells(table);
  ASSERT_EQ(table.factor_analyses(0).effects_size(), 1);
  EXPECT_THAT(table.factor_analyses(0).effects(0).factors(), ElementsAre("lr & warmup"));
  table.mutable_rows(1)->mutable_cells(0)->mutable_runs(0)->set_value(std::nan(""));
  compare_cells(table);
  EXPECT_THAT(table.factor_analyses(0).why(), HasSubstr("seed 0 diverged"));
  EXPECT_THAT(table.factor_analyses(0).effects(), IsEmpty());
}

class TableStatisticsTest : public StoreTest {};

TEST_F(TableStatisticsTest, AreInThePartsThatAskForThem) {
  submit(sweep_of("s", 3, 2));
  for (storage::TrialId trial = 1; trial <= 6; ++trial) complete(trial, 70 + trial * trial);
  storage::Database reader{folder / "results.db", storage::Database::Mode::kReadOnly};
  TableCache tables{folder / "results.db"};
  const auto packed = tables.table(reader, "s");
  EXPECT_FALSE(packed->part({}).rows(1).cells(0).has_statistics());
  const auto part = packed->part({.first = 1, .count = 1, .with_statistics = true});
  auto whole = table(reader, "s");
  add_statistics(whole);
  EXPECT_EQ(part.rows(0).cells(0).SerializeAsString(), whole.rows(1).cells(0).SerializeAsString())
      << "the baseline is in another part";
  EXPECT_EQ(part.rows(0).cells(0).statistics().baseline(), "a");
  EXPECT_EQ(packed->part({.first = 1, .count = 1, .with_statistics = true}).SerializeAsString(),
            part.SerializeAsString())
      << "from what is kept";
  EXPECT_FALSE(part.rows(0).cells(1).has_statistics()) << "a count";
}

TEST(MemoTest, KeepsTheNewest) {
  Memo<int> memo{2};
  int computed = 0;
  const auto get = [&](const std::string& key) { return memo.get(key, [&] { return ++computed; }); };
  EXPECT_EQ(get("a"), 1);
  EXPECT_EQ(get("a"), 1);
  for (const char* key : {"b", "c", "d", "e"}) get(key);
  EXPECT_EQ(computed, 5);
  get("a");
  EXPECT_EQ(computed, 6) << "four newer ones were asked for";
}

}  // namespace
}  // namespace abl::views
