// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "storage/count_store.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::HasSubstr;

class TableTest : public StoreTest {};

TEST_F(TableTest, CellsAreMeanAndDeviationOverTheSeedsThatAreThere) {
  submit(sweep_of("s", 2, 3));  // trials 1 2 (seed 0), 3 4 (seed 1), 5 6 (seed 2)
  const RunId first = complete(1, 79.0);
  complete(3, 80.0);
  complete(5, 82.5);
  complete(2, 61.125);
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.baseline, "a");
  EXPECT_EQ(table.paper_heading, "paper: ImageNet, 100 epochs");
  ASSERT_EQ(table.columns.size(), 3u);
  ASSERT_EQ(table.rows.size(), 2u);
  const Cell& all = table.rows[0].cells[0];
  EXPECT_DOUBLE_EQ(*all.mean, 80.5);
  EXPECT_DOUBLE_EQ(*all.sd, std::sqrt((2.25 + 0.25 + 4.0) / 2));  // 1.802776
  EXPECT_EQ(all.text, "80.50 ± 1.80");
  EXPECT_EQ(all.n, 3u);
  EXPECT_EQ(all.of, 3u);
  EXPECT_EQ(all.paper, "79.70");
  EXPECT_EQ(all.values[0].run, first);
  EXPECT_EQ(all.values[2].seed, 2);
  EXPECT_EQ(table.rows[0].trials.completed, 3u);
  const Cell& one = table.rows[1].cells[0];
  EXPECT_EQ(one.text, "61.13") << "half up";
  EXPECT_FALSE(one.sd) << "one value has no deviation";
  EXPECT_EQ(one.n, 1u);
}

TEST_F(TableTest, TakeChoosesWhatOfARunCounts) {
  auto text = sweep_of("s", 1, 1);
  text.sweep.columns.clear();
  for (const auto take : values_of<protocol::Take>())
    text.sweep.columns.push_back({.name = std::string{name_of(take)},
                                  .heading = std::string{name_of(take)},
                                  .kind = Column::Kind::kMetric,
                                  .source = "val/loss",
                                  .take = take,
                                  .better = protocol::Better::kLower,
                                  .digits = 1});
  submit(text);
  const RunId id = run(1);
  metrics.append(
      id, {{.name = "val/loss", .steps = {1, 2, 3}, .values = {4.0, 1.0, 2.5}, .times_ms = {1, 2, 3}}});
  end(id, RunState::kCompleted);
  std::vector<std::string> texts;
  const Table table = read_table(db, "s");
  for (const Cell& cell : table.rows[0].cells) texts.push_back(cell.text);
  EXPECT_THAT(texts, testing::ElementsAre("2.5", "1.0", "1.0", "4.0", "2.5"));
}

TEST_F(TableTest, TheColumnSaysWhichIsTheBest) {
  auto text = sweep_of("s", 1, 1);
  text.sweep.columns.clear();
  for (const auto better : {protocol::Better::kLower, protocol::Better::kHigher})
    text.sweep.columns.push_back({.name = std::string{name_of(better)},
                                  .heading = std::string{name_of(better)},
                                  .kind = Column::Kind::kMetric,
                                  .source = "fid",
                                  .take = protocol::Take::kBest,
                                  .better = better,
                                  .digits = 0});
  submit(text);
  const RunId id = run(1);
  metrics.append(id, {{.name = "fid", .steps = {1, 2, 3}, .values = {40, 10, 25}, .times_ms = {1, 2, 3}}});
  end(id, RunState::kCompleted);
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "10");
  EXPECT_EQ(table.rows[0].cells[1].text, "40");
}

TEST_F(TableTest, ACountWithoutAUnitOfItsOwnIsShownInOneThatFits) {
  auto text = sweep_of("s", 1, 1);
  for (const bool fits : {true, false})
    text.sweep.columns.push_back({.name = fits ? "fitting" : "fixed",
                                  .kind = Column::Kind::kCount,
                                  .source = "flops.macs",
                                  .unit = protocol::Unit::kBillion,
                                  .digits = {},
                                  .unit_fits = fits});
  text.sweep.rows[0].paper.clear();
  submit(text);
  CountStore{db}.insert(text.sweep.rows[0].model, {{"flops.macs", 12e6}});
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.columns[3].unit, protocol::Unit::kMillion);
  EXPECT_EQ(table.rows[0].cells[3].text, "12.00");
  EXPECT_EQ(table.columns[4].unit, protocol::Unit::kBillion) << "as the file says";
  EXPECT_EQ(table.rows[0].cells[4].text, "0.012");
}

TEST_F(TableTest, RowsWithIdenticalCurvesAreNamed) {
  auto text = sweep_of("s", 5, 2);                          // trials 1 2 3 4 5 (seed 0), 6 7 8 9 10 (seed 1)
  text.trials[4].config_hash = text.trials[3].config_hash;  // rows d, e are one configuration
  text.trials[9].config_hash = text.trials[8].config_hash;
  submit(text);  // trials 1 2 3 4 (seed 0), 5 6 7 8 (seed 1)
  const auto values = [&](double a, double b, double c, double d) {
    for (const auto& [trial, value] : std::map<TrialId, double>{{1, a}, {2, b}, {3, c}, {4, d}})
      complete(trial, value);
  };
  values(0.6, 0.7, 0.6, 0.8);
  EXPECT_THAT(read_table(db, "s").equal_rows, testing::ElementsAre(testing::ElementsAre("a", "c")))
      << "d and e are the same trial";
  complete(5, 0.5);
  complete(7, 0.5);
  complete(6, 0.5);
  EXPECT_THAT(read_table(db, "s").equal_rows, testing::ElementsAre(testing::ElementsAre("a", "c")));
  submit(sweep_of("none", 2, 1, "none"));
  for (const TrialId trial : {9u, 10u}) end(run(trial), RunState::kCompleted);
  EXPECT_TRUE(read_table(db, "none").equal_rows.empty()) << "no points are no equal points";
}

TEST_F(TableTest, RowsAreComparedByTheSeedsThatBothHave) {
  auto text = sweep_of("s", 4, 2);  // trials 1 2 3 4 (seed 0), 5 6 7 8 (seed 1)
  for (auto& trial : text.trials) trial.max_retries = 0;
  submit(text);
  for (const TrialId trial : {1u, 2u, 4u}) complete(trial, 0.6);
  end(run(3), RunState::kFailed, "out of memory");
  for (const TrialId trial : {5u, 7u}) complete(trial, 0.5);
  complete(8, 0.4);
  EXPECT_THAT(read_table(db, "s").equal_rows, testing::ElementsAre(testing::ElementsAre("a", "b", "c")))
      << "b lacks seed 1, c lacks seed 0; d differs at seed 1";
}

TEST_F(TableTest, WhatACompletedRunLacksIsMissing) {
  submit(sweep_of("s", 2, 2));  // trials 1 2 (seed 0), 3 4 (seed 1)
  const RunId id = run(1);
  for (const char* name : {"loss", "acc"})
    metrics.append(id, {{.name = name, .steps = {1}, .values = {1}, .times_ms = {1}}});
  end(id, RunState::kCompleted);
  end(run(2), RunState::kCompleted);
  Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "missing");
  EXPECT_EQ(table.rows[0].cells[0].unfilled, 1u);
  EXPECT_EQ(table.rows[0].cells[0].missing, "reported no val/top1; it reported acc, loss");
  EXPECT_EQ(table.rows[1].cells[0].missing, "reported no val/top1; it reported no metric at all");
  EXPECT_EQ(table.rows[0].trials.completed, 1u);
  EXPECT_EQ(table.rows[0].trials.unfilled, 1u);
  complete(3, 80);
  table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "80.00") << "of the seed that has it";
  EXPECT_EQ(table.rows[0].cells[0].missing, "reported no val/top1; it reported acc, loss");
  EXPECT_EQ(sweeps.get("s").trials.unfilled, 2u);
}

TEST_F(TableTest, RefusedLinesOfItsRunsAreNamed) {
  submit(sweep_of("s", 2, 1));
  complete(1, 80);
  const RunId id = run(2);
  metrics.add_refused(id, 3, "{acc: 1}");
  EXPECT_TRUE(read_table(db, "s").lost.empty()) << "no value of it is shown yet";
  end(id, RunState::kCompleted);
  const Table table = read_table(db, "s");
  ASSERT_EQ(table.lost.size(), 1u);
  EXPECT_EQ(table.lost[0].row, "b");
  EXPECT_EQ(table.lost[0].lines, 3u);
  EXPECT_EQ(table.lost[0].points, 0u);
  EXPECT_EQ(table.lost[0].example, "{acc: 1}");
}

TEST_F(TableTest, CountsComeFromTheCacheAndSettingsFromTheRow) {
  submit(sweep_of("s", 2, 1));
  CountStore{db}.insert("{\"model\":\"a\"}", {{"params.weights", 23'685'000}, {"params.all", 1}});
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[1].text, "23.69");
  EXPECT_EQ(table.rows[0].cells[1].mean, 23'685'000);
  EXPECT_EQ(table.rows[0].cells[2].text, "QKVa");
  EXPECT_EQ(table.rows[1].cells[1].text, "–");
  EXPECT_THAT(table.rows[1].cells[1].missing, HasSubstr("ablate-trainer"));
}

TEST_F(TableTest, CellWithoutAValueSaysWhy) {
  auto text = sweep_of("s", 5, 1);
  for (auto& trial : text.trials) trial.max_retries = 0;
  text.sweep.columns[2].source = "model.depth";
  submit(text);
  run(1);
  end(run(3), RunState::kFailed, "loss is not a number");
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "–");
  EXPECT_EQ(table.rows[0].cells[0].missing, "no completed trial yet: 1 running, 0 waiting");
  EXPECT_EQ(table.rows[2].cells[0].missing, "failed: loss is not a number");
  EXPECT_EQ(table.rows[3].cells[0].missing, "no completed trial yet: 0 running, 1 waiting");
  EXPECT_EQ(table.rows[0].cells[2].missing, "the row does not set model.depth");
}

TEST_F(TableTest, ResultsOfACancelledSweepStayInItsTable) {
  submit(sweep_of("s", 2, 1));
  complete(1, 80);
  sweeps.withdraw(1, now);
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "80.00");
  EXPECT_EQ(table.rows[1].cells[0].missing, "cancelled");
  EXPECT_EQ(table.rows[0].trials.completed, 1u);
  EXPECT_EQ(table.rows[1].trials.cancelled, 1u);
}

TEST_F(TableTest, ValueThatIsNotFiniteIsShownNotHidden) {
  submit(sweep_of("s", 1, 2));
  complete(1, std::numeric_limits<double>::quiet_NaN());
  complete(2, 80);
  const Cell cell = read_table(db, "s").rows[0].cells[0];
  EXPECT_EQ(cell.text, "NaN");
  EXPECT_EQ(cell.n, 2u);
}

TEST_F(TableTest, ARunThatDivergedIsToldWhereItsBestIsShown) {
  auto text = sweep_of("s", 2, 1);
  text.sweep.columns[0].take = protocol::Take::kBest;
  text.sweep.columns.push_back(text.sweep.columns[0]);
  text.sweep.columns.back().name = "last", text.sweep.columns.back().take = protocol::Take::kLast;
  submit(text);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto train = [&](TrialId trial, const std::vector<double>& values) {
    const RunId id = run(trial);
    for (std::uint32_t step = 0; step < values.size(); ++step)
      metrics.append(id, {{.name = "val/top1", .steps = {step}, .values = {values[step]}, .times_ms = {1}}});
    end(id, RunState::kCompleted);
  };
  train(1, {70, nan, 80});
  train(2, {90, nan, -std::numeric_limits<double>::infinity()});
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[1].cells[0].text, "90.00");
  EXPECT_EQ(table.rows[1].cells[0].values[0].not_finite, 2u);
  EXPECT_EQ(table.rows[0].cells.back().values[0].not_finite, 0u) << "it recovered: its last is its last";
  ASSERT_EQ(table.diverged.size(), 2u);
  EXPECT_EQ(table.diverged[1].row, "b");
  EXPECT_EQ(table.diverged[1].metric, "val/top1");
  EXPECT_EQ(table.diverged[1].points, 2u);
}

TEST_F(TableTest, AWordThatIsUnknownIsNamed) {
  for (const char* key : {"take", "unit", "better"}) {
    submit(sweep_of(key, 1, 1));
    db.execute(fmt::format(
        "UPDATE sweep_column SET {0} = 'median' WHERE sweep_id = (SELECT id FROM sweep WHERE name = '{0}')",
        key));
    const auto [code, message] = error_of([&] { read_table(db, key); });
    EXPECT_EQ(code, Code::kDataLoss);
    EXPECT_THAT(message, testing::AllOf(HasSubstr(key), HasSubstr("'median'")));
  }
}

TEST_F(TableTest, UnknownSweepIsNotFound) {
  EXPECT_EQ(error_of([&] { read_table(db, "s"); }).first, Code::kNotFound);
}

using protocol::Unit;

TEST(FormatCellTest, RoundsHalfUpInUnits) {
  const auto text = [](double mean, int digits, std::optional<Unit> unit = {}) {
    return format_cell(mean, {}, digits, unit);
  };
  EXPECT_EQ(text(61.125, 2), "61.13");
  EXPECT_EQ(text(2.675, 2), "2.68") << "as people read it, not as its bits are";
  EXPECT_EQ(text(-2.675, 2), "-2.68");
  EXPECT_EQ(text(0.005, 2), "0.01");
  EXPECT_EQ(text(0.0049, 2), "0.00");
  EXPECT_EQ(text(-0.001, 2), "0.00") << "no minus zero";
  EXPECT_EQ(text(99.995, 2), "100.00");
  EXPECT_EQ(text(0.5, 0), "1");
  EXPECT_EQ(text(0.4, 0), "0");
  EXPECT_EQ(text(0, 3), "0.000");
  EXPECT_EQ(text(1234567, 0), "1234567");
  EXPECT_EQ(text(1e20, 1), "1.00e20") << "no double has so many figures";
  EXPECT_EQ(text(1e-20, 2), "0.00");
  EXPECT_EQ(text(21'910'464, 2, Unit::kMillion), "21.91");
  EXPECT_EQ(text(4'600'000'000, 1, Unit::kBillion), "4.6");
  EXPECT_EQ(text(79.79, 2, Unit::kPercent), "79.79");
  EXPECT_EQ(format_cell(79.791, 0.1234, 2, Unit::kPercent), "79.79 ± 0.12");
  EXPECT_EQ(format_cell({}, {}, 2, Unit::kPercent), "–");
  EXPECT_EQ(text(std::nan(""), 2), "NaN");
  EXPECT_EQ(text(std::numeric_limits<double>::infinity(), 2), "∞");
}

TEST(FormatCellTest, HasTheDigitsThatAValueNeedsWhereNobodySaysHowMany) {
  const auto text = [](double mean, std::optional<double> sd = {}, std::optional<Unit> unit = {}) {
    return format_cell(mean, sd, {}, unit);
  };
  EXPECT_EQ(text(79.791, 0.1234), "79.79 ± 0.12");
  EXPECT_EQ(text(0.00123, 0.00034), "0.00123 ± 0.00034");
  EXPECT_EQ(text(0.0123), "0.012");
  EXPECT_EQ(text(75.3, 0.004), "75.3000 ± 0.0040");
  EXPECT_EQ(text(0.5, 0.0996), "0.50 ± 0.10") << "two figures of the rounded deviation";
  EXPECT_EQ(text(0.001, 0), "0.0010 ± 0.0000") << "no deviation: the value decides";
  EXPECT_EQ(text(0.3, 5.5e-17), "0.30 ± 0.00") << "a deviation of rounding alone";
  EXPECT_EQ(text(-0.00001, 0.5), "0.00 ± 0.50") << "no minus zero";
  EXPECT_EQ(text(3.2e-9), "3.20e-9");
  EXPECT_EQ(text(3.2e-9, 4.1e-10), "3.20e-9 ± 4.1e-10");
  EXPECT_EQ(text(2.3, 1e-9), "2.300000 ± 1.0e-9");
  EXPECT_EQ(text(1e300), "1.00e300");
  EXPECT_EQ(text(123456789012345678.0, 1e15), "1.235e17 ± 1.0e15");
  EXPECT_EQ(text(-1e300), "-1.00e300");
  EXPECT_EQ(text(0, 0), "0.00 ± 0.00");
  EXPECT_EQ(text(27'000, {}, Unit::kMillion), "0.027");
  EXPECT_EQ(text(std::nan(""), 1), "NaN");
}

TEST(FormatCellTest, ACountWithoutAUnitOfItsOwnGetsOneThatFits) {
  EXPECT_EQ(fitting_unit(Unit::kBillion, 4.6e9), Unit::kBillion);
  EXPECT_EQ(fitting_unit(Unit::kBillion, 0.099e9), Unit::kMillion);
  EXPECT_EQ(fitting_unit(Unit::kBillion, 50'000), std::nullopt);
  EXPECT_EQ(fitting_unit(Unit::kMillion, 307e6), Unit::kMillion) << "never a larger one than is usual";
  EXPECT_EQ(fitting_unit(Unit::kBillion, 0), Unit::kBillion) << "nothing counted yet";
}

}  // namespace
}  // namespace abl::storage
