// SPDX-License-Identifier: Apache-2.0
#include "storage/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

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

TEST_F(TableTest, ASeedThatDivergedIsCountedAndLeavesNoMeanOfTheOthers) {
  submit(sweep_of("s", 1, 2));
  complete(1, std::numeric_limits<double>::quiet_NaN());
  complete(2, 80);
  const Table table = read_table(db, "s");
  const Cell& cell = table.rows[0].cells[0];
  EXPECT_EQ(cell.text, "1/2 diverged");
  EXPECT_EQ(cell.missing, "seed 0 diverged");
  EXPECT_FALSE(cell.mean || cell.sd);
  EXPECT_EQ(cell.n, 2u);
  ASSERT_EQ(table.diverged.size(), 1u) << "and named";
  EXPECT_TRUE(table.diverged[0].at_end);
}

TEST_F(TableTest, ATrialThatFailedBecauseItDivergedLeavesNoMeanOfTheOthers) {
  auto text = sweep_of("s", 1, 3);
  text.sweep.columns.push_back(text.sweep.columns[0]);
  for (auto& trial : text.trials) trial.max_retries = 0;
  text.sweep.columns.back().name = "rate", text.sweep.columns.back().source = "train/images_per_second";
  submit(text);
  for (const TrialId trial : {1u, 2u}) {
    const RunId id = run(trial);
    for (const char* name : {"val/top1", "train/images_per_second"})
      metrics.append(id, {{.name = name, .steps = {1}, .values = {80}, .times_ms = {1}}});
    end(id, RunState::kCompleted);
  }
  end(run(3), RunState::kFailed, "diverged: the training loss is not finite since step 37");
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].text, "1/3 diverged");
  EXPECT_EQ(table.rows[0].cells[0].n, 2u);
  EXPECT_EQ(table.rows[0].cells.back().text, "80.00 ± 0.00") << "of the machine: no luck in it";
  ASSERT_EQ(table.diverged.size(), 1u);
  EXPECT_EQ(table.diverged[0].seed, 2);
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
  EXPECT_EQ(table.rows[0].cells[0].text, "80.00") << "it ended well: its best is its best";
  EXPECT_EQ(table.rows[0].cells[0].values[0].not_finite, 1u);
  EXPECT_EQ(table.rows[1].cells[0].text, "1/1 diverged") << "not 90.00, which it had once";
  EXPECT_EQ(table.rows[1].cells[0].values[0].not_finite, 2u);
  EXPECT_EQ(table.rows[0].cells.back().values[0].not_finite, 0u) << "it recovered: its last is its last";
  ASSERT_EQ(table.diverged.size(), 3u);
  EXPECT_FALSE(table.diverged[0].at_end);
  EXPECT_EQ(table.diverged[1].row, "b");
  EXPECT_EQ(table.diverged[1].metric, "val/top1");
  EXPECT_EQ(table.diverged[1].points, 2u);
  EXPECT_TRUE(table.diverged[1].at_end);
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

/// Every bit of a table.
std::string dump(const Table& table) {
  std::string text;
  const auto bits = [](const std::optional<double>& value) {
    return value ? fmt::format("{:x}", std::bit_cast<std::uint64_t>(*value)) : "-";
  };
  const auto counts = [](const TrialCounts& c) {
    return fmt::format("{} {} {} {} {} {} {} {}", c.queued, c.leased, c.running, c.completed, c.failed,
                       c.held, c.cancelled, c.unfilled);
  };
  for (const Column& column : table.columns)
    text += fmt::format("{} {}\n", column.name, name_of(column.unit));
  for (const TableRow& row : table.rows) {
    text += fmt::format("{} {} [{}]\n", row.id, row.label, counts(row.trials));
    for (const Cell& cell : row.cells) {
      text += fmt::format("  {} {} {}/{} {} {} '{}' '{}' '{}'", bits(cell.mean), bits(cell.sd), cell.n,
                          cell.of, cell.unfilled, cell.before_mend, cell.text, cell.paper, cell.missing);
      text += fmt::format(" [{}]", fmt::join(cell.diverged, " "));
      for (const CellValue& value : cell.values)
        text += fmt::format(" ({} {} {} {} {})", value.run, value.trial, value.seed, bits(value.value),
                            value.not_finite);
      text += "\n";
    }
  }
  for (const auto& diverged : table.diverged)
    text += fmt::format("diverged {} {} {} {} {}\n", diverged.row, diverged.seed, diverged.metric,
                        name_of(diverged.take), diverged.points);
  for (const auto& rows : table.equal_rows) text += fmt::format("equal {}\n", fmt::join(rows, " "));
  for (const auto& [due, rows] : table.before_mend)
    text += fmt::format("due {} {}\n", due, fmt::join(rows, " "));
  for (const auto& lost : table.lost)
    text += fmt::format("lost {} {} {} {} {} {}\n", lost.row, lost.seed, lost.run, lost.lines, lost.points,
                        lost.example);
  return text;
}

TEST_F(TableTest, AKeptTableIsToTheLastBitTheOneThatIsReadAnew) {
  std::minstd_rand random{7};
  const auto any = [&](int count) { return std::uniform_int_distribution{0, count - 1}(random); };
  const std::vector<std::string> names{"s0", "s1", "s2"};
  for (int i = 0; i < 3; ++i) {  // which share trials
    auto text = sweep_of(names[static_cast<std::size_t>(i)], 3 + i, 3);
    Column best = text.sweep.columns[0];
    best.name = "best", best.take = protocol::Take::kBest, best.unit = protocol::Unit::kMillion;
    best.unit_fits = true;
    for (const char* source : {"val/loss", "val/top1", "lr"}) {  // more than one pass takes
      best.name = std::string{"best "} + source, best.source = source;
      text.sweep.columns.push_back(best);
    }
    best.name = "mean", best.take = protocol::Take::kMean;
    text.sweep.columns.push_back(best);
    for (auto& row : text.sweep.rows) row.paper = {};
    submit(text);
  }
  const Renew as_it_is = [](const TrialRecord& trial) {
    return RenewedTrial{trial.config, trial.identity.config_hash,
                        std::max(trial.due_version, trial.identity.result_version)};
  };
  db.note_touched();
  std::vector<KeptTable> kept;
  for (const auto& name : names) kept.emplace_back(db, name);
  int equal = 0, noted = 0, diverged = 0, due = 0;
  for (int step = 0; step < 500; ++step) {
    now += std::chrono::seconds{1};
    const auto sweep = static_cast<SweepId>(1 + any(3));
    const auto last = static_cast<int>(db.prepared("SELECT MAX(id) FROM trial")
                                           .one([](const Statement& row) { return row.integer(0); })
                                           .value());
    const auto trial = static_cast<TrialId>(1 + any(last));
    const TrialRecord record = trials.get(trial);
    switch (any(24)) {
      case 0:
        sweeps.withdraw(sweep, now);
        break;
      case 1:
      case 2:
        sweeps.retry(
            sweep, any(2) == 0 ? "" : "b", now, as_it_is,
            {.ended = any(2) == 0, .held = any(2) == 0, .unfilled = any(2) == 0, .before_mend = any(2) == 0});
        break;
      case 3:
        sweeps.claim_instead(std::nullopt, trial, static_cast<TrialId>(1 + any(last)));
        break;
      case 4:  // a correction of the trainer
        db.prepared("UPDATE trial SET due_version = result_version + 1 WHERE id = :trial")
            .bind(":trial", trial)
            .run();
        break;
      case 5:
        CountStore{db}.insert("{\"model\":\"" + std::string(1, static_cast<char>('a' + any(4))) + "\"}",
                              {{"params.weights", 1e5 * (1 + any(3))}});
        break;
      default:
        if (record.state == TrialState::kQueued) {
          if (const auto leased = trials.lease(trial, "alice", "host", now, now + std::chrono::seconds{30});
              leased && any(4) > 0)
            trials.start(leased->run, {.total_steps = 100, .data_fingerprint = "f1"}, now);
        } else if (record.state == TrialState::kLeased || record.state == TrialState::kRunning) {
          const double values[]{0.1 * any(30), 80 + 0.1 * any(3), std::nan(""), 3e6 * any(2)};
          const bool usual = any(3) == 0;  // as others are
          for (const char* metric : {"val/top1", "val/loss", "lr"})
            if (usual || any(4) > 0)
              metrics.append(*record.run,
                             {{.name = metric,
                               .steps = {50, 100},
                               .values = {usual ? 1 : values[any(4)], usual ? 2 : values[any(2)]},
                               .times_ms = {1, 2}}});
          if (any(5) == 0) metrics.add_refused(*record.run, 2, "'x' (not a number)");
          constexpr RunState kEnds[]{RunState::kCompleted, RunState::kCompleted, RunState::kCompleted,
                                     RunState::kFailed,    RunState::kStopped,   RunState::kLost};
          trials.end(*record.run,
                     {.state = kEnds[any(6)],
                      .reason = "exit code 3",
                      .retryable = any(2) == 0,
                      .worker_trouble = true},
                     now);
        }
    }
    const Touched touched = db.take_touched();
    for (KeptTable& table : kept) {
      std::set<std::size_t> rows;
      for (const TrialId changed : touched.trials)
        for (const int row : sweeps.rows_with(table.sweep(), changed))
          rows.insert(static_cast<std::size_t>(row));
      if (!rows.empty() || !table.is_counted(db)) table.update(db, rows);
      const Table anew = read_table(db, table.table().sweep);
      ASSERT_EQ(dump(table.table()), dump(anew)) << "after step " << step;
      equal += !anew.equal_rows.empty(), noted += !anew.lost.empty(), diverged += !anew.diverged.empty();
      due += !anew.before_mend.empty();
    }
  }
  EXPECT_GT(equal, 10) << "the history has all that is noted";
  EXPECT_GT(noted, 10);
  EXPECT_GT(diverged, 10);
  EXPECT_GT(due, 10);
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

/// A sweep of two rows and two seeds with accuracy, loss, params, and expressions of them.
SweepText with_expressions() {
  auto text = sweep_of("s", 2, 2);  // trials 1 2 (seed 0), 3 4 (seed 1)
  const auto add = [&](const char* name, const char* expression, int digits = 2) {
    text.sweep.columns.push_back({.name = name,
                                  .heading = name,
                                  .kind = Column::Kind::kExpression,
                                  .source = expression,
                                  .digits = digits});
  };
  text.sweep.columns.push_back({.name = "loss", .heading = "loss", .source = "val/loss"});
  add("twice", "2 * delta");  // made of a column that comes later
  add("delta", "acc - baseline.acc");
  add("gap", "acc - paper.acc");
  add("ratio", "acc / loss");
  add("large", "log10(params)");
  return text;
}

TEST_F(TableTest, AnExpressionIsComputedSeedBySeedAndAgainstTheBaselinesMean) {
  submit(with_expressions());
  complete(1, 80.0), complete(3, 82.0);  // row a, the baseline: mean 81
  complete(2, 79.0), complete(4, 83.0);
  CountStore{db}.insert("{\"model\":\"a\"}", {{"params.weights", 1e6}});
  const Table table = read_table(db, "s");
  const Cell& delta = table.rows[1].cells[5];
  ASSERT_EQ(delta.n, 2u);
  EXPECT_DOUBLE_EQ(delta.values[0].value, -2);
  EXPECT_DOUBLE_EQ(delta.values[1].value, 2);
  EXPECT_EQ(delta.text, "0.00 ± 2.83");
  EXPECT_EQ(delta.values[0].run, table.rows[1].cells[0].values[0].run);
  EXPECT_EQ(table.rows[0].cells[5].text, "0.00 ± 1.41") << "the baseline against its own mean";
  EXPECT_EQ(table.rows[1].cells[4].text, "0.00 ± 5.66");
  EXPECT_EQ(table.rows[0].cells[6].text, "1.30 ± 1.41") << "the paper prints 79.70";
  EXPECT_EQ(table.rows[0].cells[7].missing, "loss: reported no val/loss; it reported val/top1");
  EXPECT_EQ(table.rows[0].cells[7].text, "–");
  EXPECT_EQ(table.rows[0].cells[8].text, "6.00") << "one value, in base units";
  EXPECT_EQ(table.rows[0].cells[8].of, 1u);
  EXPECT_THAT(table.rows[1].cells[8].missing, HasSubstr("params: not counted"));
}

TEST_F(TableTest, AnExpressionHasTheSeedsThatHaveAllOfItAndSaysWhatLeavesItEmpty) {
  submit(with_expressions());
  EXPECT_EQ(read_table(db, "s").rows[1].cells[5].missing,
            "acc: no completed trial yet: 0 running, 2 waiting");
  complete(2, 79.0);
  EXPECT_EQ(read_table(db, "s").rows[1].cells[5].missing,
            "baseline.acc: no completed trial yet: 0 running, 2 waiting");
  complete(1, 80.0);
  const Table one = read_table(db, "s");
  EXPECT_EQ(one.rows[1].cells[5].text, "-1.00");
  EXPECT_EQ(one.rows[1].cells[5].n, 1u);
  EXPECT_EQ(one.rows[1].cells[5].of, 2u);
  const RunId both = run(4);
  const auto at = now.time_since_epoch().count();
  metrics.append(both, {{.name = "val/top1", .steps = {1}, .values = {81}, .times_ms = {at}},
                        {.name = "val/loss", .steps = {1}, .values = {0}, .times_ms = {at}}});
  end(both, RunState::kCompleted);
  EXPECT_EQ(read_table(db, "s").rows[1].cells[7].missing, "seed 1: division by zero") << "acc / loss";
}

TEST_F(TableTest, ADivergedSeedLeavesAnExpressionEmpty) {
  submit(with_expressions());
  complete(1, 80.0), complete(3, std::numeric_limits<double>::quiet_NaN());
  complete(2, 79.0);
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[5].missing, "acc: seed 1 diverged");
  EXPECT_EQ(table.rows[1].cells[5].missing, "baseline.acc: seed 1 diverged");
}

TEST_F(TableTest, ExpressionsFollowTheirBaselineWhereATableIsKept) {
  submit(with_expressions());
  complete(2, 79.0);
  KeptTable kept{db, "s"};
  const auto same = [&] {
    const Table fresh = read_table(db, "s");
    for (std::size_t row = 0; row < fresh.rows.size(); ++row)
      for (std::size_t cell = 0; cell < fresh.columns.size(); ++cell) {
        EXPECT_EQ(kept.table().rows[row].cells[cell].text, fresh.rows[row].cells[cell].text)
            << row << " " << cell;
        EXPECT_EQ(kept.table().rows[row].cells[cell].missing, fresh.rows[row].cells[cell].missing);
      }
  };
  complete(1, 80.0);
  kept.update(db, {0});  // row a alone: row b is compared with it
  same();
  EXPECT_EQ(kept.table().rows[1].cells[5].text, "-1.00");
  CountStore{db}.insert("{\"model\":\"b\"}", {{"params.weights", 100}});
  kept.update(db, {});
  same();
  EXPECT_EQ(kept.table().rows[1].cells[8].text, "2.00");
}

}  // namespace
}  // namespace abl::storage
