// SPDX-License-Identifier: Apache-2.0
#include "cli/watch_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cli/words.h"
#include "printing/table.h"
#include "tests/golden.h"
#include "tests/printing/tables.h"

namespace abl::cli {
namespace {

using namespace ablate::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TrialSummary trial(const char* row, TrialState state) {
  TrialSummary trial;
  trial.set_row(row);
  trial.set_state(state);
  trial.set_attempt(1);
  return trial;
}

TrialSummary running(const char* row, std::uint32_t step) {
  TrialSummary summary = trial(row, TRIAL_STATE_RUNNING);
  summary.set_worker("box-1");
  summary.set_step(step);
  summary.set_total_steps(1000);
  summary.set_steps_per_second(12.5);
  summary.set_eta_seconds(40);
  (*summary.mutable_last())["val/top1"] = 42.125;
  return summary;
}

SweepProgress progress(std::initializer_list<TrialSummary> trials, std::uint32_t completed) {
  SweepProgress progress;
  progress.mutable_summary()->set_name("msf-sharing");
  progress.mutable_summary()->set_state(SWEEP_STATE_ACTIVE);
  progress.mutable_summary()->set_eta_seconds(125);
  progress.mutable_summary()->mutable_trials()->set_total(4);
  progress.mutable_summary()->mutable_trials()->set_completed(completed);
  progress.mutable_summary()->mutable_trials()->set_running(1);
  std::map<std::string, std::uint32_t> reasons;
  for (const auto& trial : trials) {
    *progress.add_trials() = trial;
    if (trial.state() == TRIAL_STATE_QUEUED && !trial.reason().empty()) ++reasons[trial.reason()];
  }
  for (const auto& [reason, count] : reasons) {
    Waiting& waiting = *progress.add_waiting();
    waiting.set_reason(reason);
    waiting.set_trials(count);
  }
  *progress.mutable_table() = printing::sample_table();
  return progress;
}

TrialSummary waiting(const char* row) {
  TrialSummary summary = trial(row, TRIAL_STATE_QUEUED);
  summary.set_reason("all 2 slots are busy");
  return summary;
}

TEST(WatchScreen, ThePictureHasBarRunningTrialsReasonsAndTable) {
  WatchScreen screen;
  screen.update(
      progress({trial("o", TRIAL_STATE_COMPLETED), running("h", 500), waiting("a"), waiting("b")}, 1));
  std::string text;
  for (const auto& line : screen.lines(Terminal{stdout, true, false, 100, 40})) text += line + "\n";
  expect_golden("cli", "watch.txt", text);
}

TEST(WatchScreen, MetricsAreSeenAt80ColumnsWhateverTheRowsAreCalled) {
  WatchScreen screen;
  SweepProgress start = progress({running("attention=MSF,groups=4,lr=0.001,epochs=20", 500)}, 1);
  *start.mutable_table() = printing::factor_table();
  (*start.mutable_trials(0)->mutable_last())["val/top1"] = 42.125;
  (*start.mutable_trials(0)->mutable_last())["val/loss"] = std::nan("");
  screen.update(start);
  std::string text;
  for (const auto& line : screen.lines(Terminal{stdout, true, false, 80, 24})) {
    text += line + "\n";
    EXPECT_LE(display_width(line), 80) << line;
  }
  expect_golden("cli", "watch_factors_80.txt", text);
}

TEST(WatchScreen, SaysWhyTrialsWait) {
  WatchScreen screen;
  screen.update(progress({running("h", 500), waiting("a"), waiting("b"), trial("c", TRIAL_STATE_QUEUED)}, 0));
  EXPECT_THAT(screen.waiting(), ElementsAre("2 trials wait: all 2 slots are busy"));
  EXPECT_THAT(screen.reasons(), ElementsAre("all 2 slots are busy"));
}

TEST(WatchScreen, ACountdownIsOneReason) {
  WatchScreen screen;
  TrialSummary retried = waiting("a");
  const auto reasons_with = [&](const char* reason) {
    retried.set_reason(reason);
    screen.update(progress({retried}, 0));
    return screen.reasons();
  };
  const auto first = reasons_with("exit code 3; retry in 7 s");
  EXPECT_EQ(reasons_with("exit code 3; retry in 6 s"), first);
  EXPECT_THAT(screen.waiting(), ElementsAre("1 trial waits: exit code 3; retry in 6 s"));
  EXPECT_NE(reasons_with("exit code 4; retry in 7 s"), first);
}

TEST(WatchScreen, AtTheEndTheLineHasTheCountsAndNoShareOfItsOwn) {
  WatchScreen screen;
  auto end = progress({running("a", 1)}, 0);
  auto& summary = *end.mutable_summary();
  summary.set_state(SWEEP_STATE_FAILED);
  summary.mutable_trials()->set_total(72);
  summary.mutable_trials()->set_running(0);
  summary.mutable_trials()->set_completed(38);
  summary.mutable_trials()->set_unfilled(2);
  summary.mutable_trials()->set_failed(4);
  summary.mutable_trials()->set_cancelled(30);
  screen.update(end);
  EXPECT_THAT(screen.status(),
              testing::EndsWith(": failed, 36/72 trials, 4 failed, 2 missing a metric, 30 cancelled"));
  EXPECT_EQ(screen.fraction(), 0.5);
}

TEST(WatchScreen, SaysThatNothingCanBeStored) {
  WatchScreen screen;
  auto start = progress({running("a", 1)}, 0);
  start.set_trouble("results.db: the disk is full");
  screen.update(start);
  EXPECT_THAT(screen.lines(Terminal{stdout, true, false, 100, 40}),
              testing::Contains(HasSubstr("the scheduler can store nothing: results.db: the disk is full")));
}

/// Of the factors lr and name, the first is shown by a column of the table.
Table table_with_a_settings_column() {
  Table table;
  Column& top1 = *table.add_columns();
  top1.set_name("top1");
  top1.set_kind(Column::KIND_METRIC);
  top1.set_source("val/top1");
  Column& lr = *table.add_columns();
  lr.set_name("lr");
  lr.set_kind(Column::KIND_SETTING);
  lr.set_source("params.lr");
  for (const char* rate : {"0.1", "0.2"})
    for (const char* name : {"sgd", "adam"}) {
      TableRow& row = *table.add_rows();
      row.set_id(std::string{"lr="} + rate + ",name=" + name);
      row.add_cells()->set_text("79.50");
      row.add_cells()->set_text(rate);
    }
  return table;
}

TEST(WatchScreen, RunningTrialsAreToldApartByEveryFactorAlsoByThoseThatATableColumnShows) {
  WatchScreen screen;
  auto start = progress({running("lr=0.1,name=sgd", 1), running("lr=0.2,name=sgd", 2)}, 0);
  *start.mutable_table() = table_with_a_settings_column();
  screen.update(start);
  const auto lines = screen.lines(Terminal{stdout, true, false, 100, 40});
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("0.1  sgd")));
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("0.2  sgd")));
}

TEST(WatchScreen, ATableWithoutRoomKeepsTheSettingThatStandsForAFactor) {
  Table table = table_with_a_settings_column();
  Column& other = *table.add_columns();
  other = table.columns(1);
  other.set_name("a setting that is the same in all");
  for (auto& row : *table.mutable_rows()) row.add_cells()->set_text("some text of the file");
  const Terminal narrow{stdout, true, false, 40, 40};
  const std::string text = render_table(table, TableFormat::kText, &narrow);
  EXPECT_THAT(text, testing::ContainsRegex("name .*lr"));
  EXPECT_THAT(text, testing::Not(HasSubstr("some text")));
}

TEST(WatchScreen, AMetricOfTwoColumnsIsSaidOnce) {
  WatchScreen screen;
  SweepProgress start = progress({running("h", 500)}, 1);
  Column& best = *start.mutable_table()->add_columns();
  best = start.table().columns(0);
  best.set_name("best");
  screen.update(start);
  start.mutable_trials(0)->set_state(TRIAL_STATE_COMPLETED);
  EXPECT_THAT(screen.update(start), ElementsAre("row h seed 0: completed  val/top1 42.13"));
}

TEST(WatchScreen, ARunningTrialCountsByItsSteps) {
  WatchScreen screen;
  screen.update(progress({running("h", 500)}, 1));
  EXPECT_DOUBLE_EQ(screen.fraction(), 1.5 / 4);
  EXPECT_EQ(screen.status(), "msf-sharing 38%, 1/4 trials, 1 running, 12.5 steps/s, ETA 2m 05s");
}

TEST(WatchScreen, TheFirstMessageIsNoNewsAndLaterChangesAreALineEach) {
  WatchScreen screen;
  EXPECT_THAT(
      screen.update(progress({trial("o", TRIAL_STATE_COMPLETED), running("h", 1), running("a", 1)}, 1)),
      IsEmpty());
  TrialSummary done = running("h", 1000), failed = trial("a", TRIAL_STATE_FAILED);
  done.set_state(TRIAL_STATE_COMPLETED);
  failed.set_reason("exit code 3\nTraceback");
  EXPECT_THAT(screen.update(progress({done, failed}, 2)),
              ElementsAre("row h seed 0: completed  val/top1 42.13", "row a seed 0: failed: exit code 3"));
  EXPECT_THAT(screen.update(progress({done, failed}, 2)), IsEmpty()) << "said once";
  EXPECT_THAT(screen.failures(), ElementsAre("row a seed 0: failed at attempt 1: exit code 3"));
}

TEST(WatchScreen, WhatComesBeforeTheEndOfABeginningIsNoNews) {
  WatchScreen screen;
  SweepProgress page = progress({trial("o", TRIAL_STATE_COMPLETED), running("h", 1)}, 1);
  page.set_begins(true);
  page.set_more(true);
  page.clear_table();
  EXPECT_THAT(screen.update(page), IsEmpty());
  SweepProgress last = progress({trial("a", TRIAL_STATE_COMPLETED)}, 2);
  last.set_number(7);
  EXPECT_THAT(screen.update(last), IsEmpty());
  EXPECT_EQ(screen.number(), 7u);
  const int rows = last.table().rows_size();
  EXPECT_EQ(screen.table().rows_size(), rows);
  last.clear_trials();
  *last.add_trials() = trial("h", TRIAL_STATE_COMPLETED);
  last.clear_table();
  EXPECT_THAT(screen.update(last), ElementsAre("row h seed 0: completed"));
  EXPECT_EQ(screen.table().rows_size(), rows) << "the table that was said last";
}

TEST(WatchScreen, AfterABreakWhatEndedMeanwhileIsNews) {
  WatchScreen screen;
  screen.update(progress({trial("o", TRIAL_STATE_COMPLETED), running("h", 1)}, 1));
  SweepProgress again = progress({trial("o", TRIAL_STATE_COMPLETED), trial("h", TRIAL_STATE_COMPLETED)}, 2);
  again.set_begins(true);
  EXPECT_THAT(screen.update(again), ElementsAre("row h seed 0: completed"));
}

TEST(WatchScreen, AHeldTrialIsSaidWithItsReasonAndEndsTheSweep) {
  WatchScreen screen;
  screen.update(progress({running("h", 10)}, 0));
  TrialSummary held = trial("h", TRIAL_STATE_HELD);
  held.set_reason("held: 5 attempts in a row ended with the death of a worker");
  auto message = progress({held}, 0);
  message.mutable_summary()->set_state(SWEEP_STATE_HELD);
  message.mutable_summary()->mutable_trials()->set_held(1);
  const std::string line = "row h seed 0: held: 5 attempts in a row ended with the death of a worker";
  EXPECT_THAT(screen.update(message), ElementsAre(line));
  EXPECT_THAT(screen.failures(), ElementsAre(line));
  EXPECT_THAT(screen.status(), HasSubstr("1 held"));
  EXPECT_TRUE(is_finished(screen.summary().state())) << "nobody waits for it";
}

TEST(WatchScreen, ALostTrialIsSaidToBeBackInTheQueue) {
  WatchScreen screen;
  screen.update(progress({running("h", 10)}, 0));
  TrialSummary lost = trial("h", TRIAL_STATE_QUEUED);
  lost.set_reason("worker box-1 is gone");
  EXPECT_THAT(screen.update(progress({lost}, 0)),
              ElementsAre("row h seed 0: back in the queue: worker box-1 is gone"));
}

}  // namespace
}  // namespace abl::cli
