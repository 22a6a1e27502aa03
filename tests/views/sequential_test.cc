// SPDX-License-Identifier: Apache-2.0
// Tables of sweeps to which seeds are added until enough is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "statistics/welch.h"
#include "views/compared.h"
#include "views/comparison.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using testing::HasSubstr;

/// Rows a, b … with their seeds' values, of looks after 2 to 4 seeds; a is the baseline.
v1::Table looked_at(const std::vector<std::vector<double>>& rows) {
  v1::Table table;
  table.set_baseline("a");
  v1::Sequential& sequential = *table.mutable_sequential();
  sequential.set_looks(3);
  sequential.set_min(2);
  sequential.set_spending("pocock");
  for (int seed = 0; seed < 4; ++seed) sequential.add_seeds(seed);
  v1::Column& column = *table.add_columns();
  column.set_kind(v1::Column::KIND_METRIC);
  column.set_better("higher");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    v1::TableRow& row = *table.add_rows();
    row.set_id(std::string(1, static_cast<char>('a' + i)));
    v1::Cell& cell = *row.add_cells();
    double sum = 0;
    for (std::size_t seed = 0; seed < rows[i].size(); ++seed) {
      v1::CellRun& run = *cell.add_runs();
      run.set_value(rows[i][seed]);
      run.set_seed(static_cast<std::int64_t>(seed));
      run.set_run(static_cast<std::uint32_t>(100 * i + seed + 1));
      sum += rows[i][seed];
    }
    cell.set_settled(static_cast<std::uint32_t>(rows[i].size()));
    row.set_planned(i > 0);
    cell.set_mean(sum / static_cast<double>(std::max<std::size_t>(1, rows[i].size())));
  }
  compare_cells(table);
  return table;
}

const statistics::SequentialDesign kDesign{3, 0.95, statistics::Spending::kPocock};

TEST(SequentialTable, ItsPValuesAreOfAllLooksTogether) {
  const auto table = looked_at({{80, 80.5, 80.2}, {82, 82.4, 82.1}});
  const auto first = statistics::welch_test({82, 82.4}, {80, 80.5});
  const auto second = statistics::welch_test({82, 82.4, 82.1}, {80, 80.5, 80.2});
  const auto expected = kDesign.p({first->p, second->p});
  EXPECT_DOUBLE_EQ(table.rows(1).cells(0).p(), *expected);
  EXPECT_GT(table.rows(1).cells(0).p(), second->p) << "they cost something";
  EXPECT_THAT(table.rows(1).cells(0).comparison().why(), HasSubstr("sequential (look 2 of 3)"));
}

TEST(SequentialTable, SeedsThatOneSideAloneHasAreOfNoLook) {
  const auto table = looked_at({{80, 80.5}, {82, 82.4, 99, 10}});
  const auto first = statistics::welch_test({82, 82.4}, {80, 80.5});
  EXPECT_DOUBLE_EQ(table.rows(1).cells(0).p(), *kDesign.p({first->p}));
  EXPECT_THAT(table.rows(1).cells(0).comparison().why(), HasSubstr("look 1 of 3"));
}

TEST(SequentialTable, ASeedThatEndedWithoutAValueIsLeftOutAndOneThatHasNotEndedIsWaitedFor) {
  auto table = looked_at({{80, 80.5, 80.2, 80.4}, {82, 82.4, 82.1, 82.3}});
  table.mutable_rows(1)->mutable_cells(0)->mutable_runs()->DeleteSubrange(1, 1);  // seed 1 failed
  compare_cells(table);
  const auto first = statistics::welch_test({82, 82.1}, {80, 80.2});
  const auto second = statistics::welch_test({82, 82.1, 82.3}, {80, 80.2, 80.4});
  EXPECT_DOUBLE_EQ(table.rows(1).cells(0).p(), *kDesign.p({first->p, second->p}));
  table.mutable_rows(1)->mutable_cells(0)->set_settled(3);  // seed 3 was trained before seed 2
  compare_cells(table);
  EXPECT_DOUBLE_EQ(table.rows(1).cells(0).p(), *kDesign.p({first->p}));
}

TEST(SequentialTable, AllComparisonsThatWerePlannedAreCorrectedForAlsoThoseWithoutAValue) {
  const auto table = looked_at({{80, 80.5, 80.2}, {82, 82.4, 82.1}, {}, {81}});
  const auto& cell = table.rows(1).cells(0);
  EXPECT_EQ(cell.comparison().family(), 3u);
  EXPECT_DOUBLE_EQ(cell.p_corrected(), 3 * cell.p());
}

TEST(SequentialTable, ItsIntervalsAreWiderThanThoseOfAFixedNumberOfSeeds) {
  auto table = looked_at({{80, 80.5, 80.2}, {82, 82.4, 82.1}});
  add_statistics(table);
  const auto sequential = table.rows(0).cells(0).statistics();
  const auto interval = statistics::t_interval({80, 80.5, 80.2}, kDesign.level_at(1));
  EXPECT_DOUBLE_EQ(sequential.interval().low(), interval->low);
  EXPECT_THAT(sequential.lines(0), HasSubstr("sequential"));
  EXPECT_LT(sequential.interval().low(), statistics::t_interval({80, 80.5, 80.2})->low);
}

}  // namespace
}  // namespace abl::views
