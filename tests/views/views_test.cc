// SPDX-License-Identifier: Apache-2.0
#include "views/views.h"

#include <fmt/format.h>

#include <limits>

#include "storage/resource_store.h"
#include "storage/table.h"
#include "storage/worker_store.h"
#include "tests/storage/fixtures.h"
#include "views/json.h"

namespace abl::views {
namespace {

using namespace std::chrono_literals;
namespace v1 = ablate::v1;
using storage::RunState;
using storage::StoreTest;
using storage::sweep_of;
using testing::ElementsAre;
using testing::HasSubstr;

class ViewsTest : public StoreTest {
 protected:
  /// Points a second apart, ten steps each.
  void report(storage::RunId run, int points) {
    storage::Series series{.name = "train/loss"};
    for (int i = 1; i <= points; ++i) {
      series.steps.push_back(static_cast<std::uint32_t>(10 * i));
      series.values.push_back(1.0 / i);
      series.times_ms.push_back((now + i * 1s).time_since_epoch().count());
    }
    metrics.append(run, {series});
  }
};

TEST_F(ViewsTest, ListsHaveTheirShareOfMetrics) {
  submit(storage::sweep_of("s", 2, 1));
  complete(1, 80);
  complete(2, 80);
  db.execute(R"sql(
      INSERT INTO metric (name) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60000) SELECT 'm' || i FROM n;
      INSERT INTO metric_summary (run_id, metric_id, count, finite, min, max, sum, last, last_kind, last_step, min_step, max_step)
      SELECT ms.run_id, m.id, ms.count, ms.finite, ms.min, ms.max, ms.sum, ms.last, ms.last_kind,
        ms.last_step, ms.min_step, ms.max_step FROM metric m, metric_summary ms WHERE ms.run_id = 1 AND m.name GLOB 'm[0-9]*')sql");
  const auto list = list_runs(db, {});
  ASSERT_EQ(list.runs_size(), 2);
  EXPECT_EQ(list.runs(1).metrics_size(), 15'000) << "half of what an answer has";
  EXPECT_EQ(list.runs(1).metrics_left_out(), 45'001u);
  EXPECT_EQ(list.runs(1).metrics(14'999).name(), "val/top1") << "which a column takes";
  EXPECT_EQ(list.runs(0).metrics_left_out(), 0u);
  const auto trial = sweep_detail(db, "s").trials(0);
  EXPECT_EQ(trial.last_size(), 50'000);
  EXPECT_EQ(trial.metrics_left_out(), 10'001u);
  EXPECT_EQ(run_detail(db, 1).summary().metrics_size(), 60'001) << "a run by itself has all";
}

TEST_F(ViewsTest, SweepStateFollowsFromItsTrials) {
  auto text = sweep_of("s", 2, 1);
  for (auto& trial : text.trials) trial.max_retries = 0;
  submit(text);
  const auto state = [&] { return sweep_summary(db, sweeps.get("s")).state(); };
  EXPECT_EQ(state(), v1::SWEEP_STATE_ACTIVE);
  sweeps.set_state(1, storage::SweepState::kPaused, now);
  EXPECT_EQ(state(), v1::SWEEP_STATE_PAUSED);
  sweeps.set_state(1, storage::SweepState::kActive, now);
  complete(1, 80);
  EXPECT_EQ(state(), v1::SWEEP_STATE_ACTIVE);
  end(run(2), RunState::kFailed);
  EXPECT_EQ(state(), v1::SWEEP_STATE_FAILED);
  sweeps.retry(1, "", now, storage::as_due);
  complete(2, 80);
  EXPECT_EQ(state(), v1::SWEEP_STATE_COMPLETED);
  sweeps.withdraw(1, now);
  EXPECT_EQ(state(), v1::SWEEP_STATE_CANCELLED);
}

TEST_F(ViewsTest, SweepWhoseTrialsLackAMetricIsIncomplete) {
  submit(sweep_of("s", 1, 1));
  complete(1, 3, "val/loss");
  const auto summary = sweep_summary(db, sweeps.get("s"));
  EXPECT_EQ(summary.state(), v1::SWEEP_STATE_INCOMPLETE);
  EXPECT_EQ(summary.trials().completed(), 1u);
  EXPECT_EQ(summary.trials().unfilled(), 1u);
  EXPECT_TRUE(sweep_detail(db, "s").trials(0).unfilled());
  const auto message = table(db, "s");
  EXPECT_EQ(message.rows(0).cells(0).text(), "missing");
  EXPECT_EQ(message.rows(0).cells(0).unfilled(), 1u);
  EXPECT_EQ(message.rows(0).trials().unfilled(), 1u);
}

TEST_F(ViewsTest, HeldTrialIsShownWithItsReason) {
  submit(sweep_of("s", 1, 1));
  for (int death = 0; death < storage::TrialStore::kDeathsInARow; ++death) {
    const auto id = run(1);
    trials.note_death({id});
    end(id, RunState::kLost, "its worker was killed");
    now += storage::TrialStore::kLongestBackOff;
  }
  const auto detail = sweep_detail(db, "s");
  EXPECT_EQ(detail.summary().state(), v1::SWEEP_STATE_HELD);
  EXPECT_EQ(detail.summary().trials().held(), 1u);
  EXPECT_EQ(detail.summary().trials().failed(), 0u);
  EXPECT_EQ(detail.trials(0).state(), v1::TRIAL_STATE_HELD);
  EXPECT_THAT(detail.trials(0).reason(), HasSubstr("release it with 'ablate retry <sweep> --held'"));
  EXPECT_THAT(table(db, "s").rows(0).cells(0).missing(), HasSubstr("held: 5 attempts in a row"));
}

TEST_F(ViewsTest, TableNotesSayWhatItsNumbersHide) {
  submit(sweep_of("s", 4, 1));
  complete(1, 60);
  complete(2, 61);
  complete(3, 60);
  const auto id = run(4);
  metrics.add_refused(id, 1, "{acc: 1}");
  metrics.append(id, {{.name = "val/top1", .steps = {100}, .values = {70}, .times_ms = {1}}});
  metrics.append(id, {{.name = "val/top1", .steps = {100}, .values = {71}, .times_ms = {2}}});
  end(id, RunState::kCompleted);
  db.execute("UPDATE trial SET due_version = 99 WHERE id = 2");
  const auto message = table(db, "s");
  EXPECT_THAT(
      message.notes(),
      ElementsAre(
          "rows a, c have identical curves: does what differs between them have an effect?",
          "row b: results made before a correction: the trainer's results have changed since ('ablate retry "
          "s "
          "--before-mend' trains them again)",
          "row d, seed 0: 1 metric report of run 4 refused, such as {acc: 1}",
          "row d, seed 0: 1 point of run 4 repeats an earlier step with a different value; the first value "
          "was kept"));
  EXPECT_EQ(message.rows(1).cells(0).before_mend(), 1u);
  EXPECT_EQ(run_detail(db, id).summary().refused_lines(), 1u);
  EXPECT_EQ(run_detail(db, id).summary().refused_example(), "{acc: 1}");
  const auto detail = sweep_detail(db, "s");
  EXPECT_EQ(detail.trials(1).before_mend(), "the trainer's results have changed since");
  EXPECT_EQ(detail.trials(0).before_mend(), "");
  EXPECT_EQ(detail.trials(3).refused_lines(), 1u);
  EXPECT_EQ(detail.trials(3).repeated_points(), 1u);
  EXPECT_EQ(run_detail(db, id).summary().repeated_points(), 1u);
}

TEST_F(ViewsTest, NotesAreBoundedHoweverManyRowsAreEqual) {
  auto text = sweep_of("s", 50, 1);
  for (std::size_t i = 0; auto& row : text.sweep.rows) {
    row.id = row.label = fmt::format("r{}", ++i);
    row.set_json = "{}";
  }
  submit(text);
  for (storage::TrialId trial = 1; trial <= 50; ++trial) complete(trial, trial / 2);
  const auto message = table(db, "s");
  ASSERT_EQ(message.notes_size(), 21);
  EXPECT_EQ(message.notes(20), "and 4 more groups of rows have identical curves");
}

TEST_F(ViewsTest, TimesAndRatesOfRunsThatSharedTheirGpuAreMarkedAndNothingElse) {
  auto text = sweep_of("s", 2, 2);
  text.sweep.columns.push_back({.name = "rate", .heading = "rate", .source = "images_per_s"});
  submit(text);
  for (const storage::TrialId trial : {1, 2, 3, 4}) {
    const auto id = run(trial);
    for (const char* metric : {"val/top1", "images_per_s"})
      metrics.append(id, {{.name = metric, .steps = {1}, .values = {50.0 + trial}, .times_ms = {1}}});
    if (trial != 2) trials.note_packed({id}, trial == 1 ? 1 : 3);
    trials.note_packed({id}, 0);
    end(id, RunState::kCompleted);
  }
  const auto message = table(db, "s");
  EXPECT_EQ(message.rows(0).cells(0).packed(), 0u) << "an accuracy is the same on any GPU";
  EXPECT_EQ(message.rows(0).cells(3).packed(), 2u);
  EXPECT_EQ(message.rows(0).cells(3).runs(0).packed_with(), 1u);
  EXPECT_EQ(message.rows(1).cells(3).packed(), 1u);
  EXPECT_THAT(message.notes(),
              ElementsAre("‡ rows a, b: images_per_s of runs that shared their GPU with up to 3 others"));
  EXPECT_EQ(run_detail(db, 1).summary().packed_with(), 1u);
}

TEST_F(ViewsTest, WhatRunsLostForOneReasonIsOneNoteWithRowsAndSeeds) {
  submit(sweep_of("s", 3, 2));
  for (const storage::TrialId trial : {1, 2, 3, 4, 5, 6}) {
    const auto id = run(trial);
    const auto value = static_cast<double>(trial);
    if (trial != 6)
      metrics.add_refused(id, 2, fmt::format("{{\"acc\": {}}} (\"step\" must be a whole number)", trial));
    metrics.append(id, {{.name = "val/top1", .steps = {0}, .values = {value}, .times_ms = {1}}});
    metrics.append(id, {{.name = "val/top1", .steps = {0}, .values = {value + 1}, .times_ms = {2}}});
    end(id, RunState::kCompleted);
  }
  EXPECT_THAT(
      table(db, "s").notes(),
      ElementsAre("rows a, b, c, seeds 0, 1: 10 metric reports of 5 runs refused, such as "
                  "{\"acc\": 1} (\"step\" must be a whole number)",
                  "rows a, b, c, seeds 0, 1: 6 points of 6 runs repeat earlier steps with different values; "
                  "the first values were kept"));
}

TEST_F(ViewsTest, CancelledSweepOfWhichOneRowWasRetriedEndsCancelled) {
  submit(sweep_of("s", 2, 1));
  sweeps.withdraw(1, now);
  sweeps.retry(1, "a", now, storage::as_due);
  const auto state = [&] { return sweep_summary(db, sweeps.get("s")).state(); };
  EXPECT_EQ(state(), v1::SWEEP_STATE_ACTIVE);
  complete(1, 80);
  EXPECT_EQ(state(), v1::SWEEP_STATE_CANCELLED) << "the other row is still withdrawn";
}

TEST_F(ViewsTest, DetailShowsEveryTrialAndTheTimeLeft) {
  auto text = sweep_of("s", 2, 1);
  for (auto& row : text.sweep.rows) row.work_hash = "the same work";
  submit(text);
  report(run(1), 5);  // 10 steps a second, 50 of 100 done
  trials.set_waiting(2, "all 1 slots are busy");
  const auto detail = sweep_detail(db, "s");
  ASSERT_EQ(detail.trials_size(), 2);
  EXPECT_EQ(detail.text(), "name: s");
  EXPECT_EQ(detail.trials(0).state(), v1::TRIAL_STATE_RUNNING);
  EXPECT_EQ(detail.trials(0).step(), 50u);
  EXPECT_DOUBLE_EQ(detail.trials(0).eta_seconds(), 5);
  EXPECT_DOUBLE_EQ(detail.trials(0).last().at("train/loss"), 0.2);
  EXPECT_EQ(detail.trials(0).worker(), "alice");
  EXPECT_EQ(detail.trials(1).reason(), "all 1 slots are busy");
  EXPECT_FALSE(detail.trials(1).has_eta_seconds());
  EXPECT_DOUBLE_EQ(detail.summary().eta_seconds(), 15) << "5 s of this one, 10 s of the next";
  EXPECT_DOUBLE_EQ(list_sweeps(db).sweeps(0).eta_seconds(), 15);
  sweeps.set_state(1, storage::SweepState::kPaused, now);
  EXPECT_FALSE(sweep_detail(db, "s").summary().has_eta_seconds());
}

TEST_F(ViewsTest, TableMessageIsTheStoredTable) {
  submit(sweep_of("s", 1, 2));
  const auto run = complete(1, 79);
  complete(2, 80);
  const auto message = table(db, "s");
  EXPECT_EQ(message.paper_heading(), "paper: ImageNet, 100 epochs");
  EXPECT_EQ(message.columns(0).kind(), v1::Column::KIND_METRIC);
  EXPECT_TRUE(message.columns(0).has_paper());
  EXPECT_EQ(message.columns(1).kind(), v1::Column::KIND_COUNT);
  EXPECT_FALSE(message.columns(1).has_paper());
  EXPECT_EQ(message.columns(2).kind(), v1::Column::KIND_SETTING);
  const auto& cell = message.rows(0).cells(0);
  EXPECT_EQ(cell.text(), "79.50 ± 0.71");
  EXPECT_EQ(cell.paper(), "79.70");
  EXPECT_EQ(cell.n(), 2u);
  EXPECT_EQ(cell.runs(0).run(), run);
  EXPECT_FALSE(message.rows(0).cells(1).has_mean());
}

TEST_F(ViewsTest, WhatTheStoreMakesNothingOfIsShownAsSubmitted) {
  auto text = sweep_of("s", 1, 1);  // `left_out` and `has_paper` stand in for what a file may come to say
  text.sweep.canonical =
      R"({"table":{"left_out":7,"later":{},"columns":[{"heading":"old"},{"has_paper":true,"metric":"m","digits":2}]}})";
  submit(text);
  const auto message = table(db, "s");
  EXPECT_EQ(message.left_out(), 7u);
  EXPECT_EQ(message.columns(0).heading(), "top-1") << "what it makes something of is its own";
  EXPECT_EQ(message.columns_size(), 3);
  text = sweep_of("unlike", 1, 1);
  text.sweep.canonical = R"({"table":{"left_out":"many"}})";
  submit(text);
  EXPECT_EQ(table(db, "unlike").columns(0).heading(), "top-1");
}

TEST_F(ViewsTest, RunIsShownWithItsPlaceMetricsAttemptsAndLog) {
  submit(sweep_of("s", 1, 1));
  submit(sweep_of("t", 1, 1));
  const auto first = run(1);
  trials.add_checkpoint({.run = first, .step = 10, .host = "h", .path = "/p", .sha256 = "aa"});
  end(first, RunState::kLost, "no heartbeat");
  const auto second = run(1);
  report(second, 3);
  metrics.append_log(second, "hello\n");
  const auto detail = run_detail(db, second);
  EXPECT_EQ(detail.summary().attempt(), 2u);
  EXPECT_EQ(detail.summary().state(), v1::RUN_STATE_RUNNING);
  ASSERT_EQ(detail.summary().rows_size(), 2);
  EXPECT_EQ(detail.summary().rows(1).sweep(), "t");
  EXPECT_EQ(detail.summary().metrics(0).count(), 3u);
  EXPECT_EQ(detail.log_tail(), "hello\n");
  EXPECT_EQ(detail.log_bytes(), 6u);
  EXPECT_EQ(detail.config_json(), "{\"seed\":0}");
  EXPECT_EQ(detail.data_fingerprint(), "f1");
  EXPECT_EQ(detail.attempts_size(), 2);
  EXPECT_EQ(detail.checkpoints_size(), 0) << "the first attempt wrote it";
  EXPECT_EQ(run_detail(db, first).checkpoints(0).run(), first);
  EXPECT_EQ(run_detail(db, first).summary().reason(), "no heartbeat");
}

TEST_F(ViewsTest, RunsAreListedBySweepAndTrial) {
  submit(sweep_of("s", 2, 1));
  submit(sweep_of("t", 1, 1, "other"));
  complete(1, 80);
  complete(3, 80);
  v1::ListRunsRequest request;
  EXPECT_EQ(list_runs(db, request).runs_size(), 2);
  request.set_sweep("s");
  EXPECT_EQ(list_runs(db, request).runs_size(), 1);
  request.set_trial(3);
  EXPECT_EQ(list_runs(db, request).runs_size(), 0);
  request.set_limit(1);
  request.clear_sweep();
  request.clear_trial();
  EXPECT_EQ(list_runs(db, request).runs(0).trial(), 3u) << "newest first";
}

TEST_F(ViewsTest, AListSaysWhatItHasNotAndWhereToGoOn) {
  for (const char* name : {"a", "b", "c", "d"}) submit(sweep_of(name, 1, 1, name));
  auto page = list_sweeps(db, {.count = 3});
  EXPECT_EQ(page.sweeps(2).name(), "b");
  EXPECT_EQ(page.left_out(), 1u);
  EXPECT_EQ(page.next(), "b");
  submit(sweep_of("new", 1, 1, "new"));  // moves nothing on
  page = list_sweeps(db, {.count = 3}, page.next());
  ASSERT_EQ(page.sweeps_size(), 1);
  EXPECT_EQ(page.sweeps(0).name(), "a");
  EXPECT_EQ(page.next(), "");
  EXPECT_EQ(storage::error_of([&] { list_sweeps(db, {}, "e"); }).first, Code::kNotFound);
  for (const storage::TrialId trial : {1, 2, 3}) complete(trial, 80);
  v1::ListRunsRequest request;
  request.set_limit(2);
  auto runs = list_runs(db, request);
  EXPECT_EQ(runs.left_out(), 1u);
  request.set_before(runs.runs(1).id());
  runs = list_runs(db, request);
  ASSERT_EQ(runs.runs_size(), 1);
  EXPECT_EQ(runs.runs(0).id(), 1u);
  EXPECT_EQ(runs.left_out(), 0u);
}

TEST_F(ViewsTest, MetricsComeByRunAndName) {
  submit(sweep_of("s", 2, 1));
  report(run(1), 50);
  v1::GetMetricsRequest request;
  request.add_runs(1);
  EXPECT_EQ(metrics.series(1, {}, 0).size(), 1u);
  EXPECT_EQ(views::metrics(db, request).series(0).series().steps_size(), 50);
  request.set_max_points(10);
  EXPECT_EQ(views::metrics(db, request).series(0).series().values_size(), 8)
      << "at most 10: two of each of 4 buckets, the first and the last among them";
  EXPECT_EQ(views::metrics(db, request).thinned_to(), 0u) << "as was asked";
  EXPECT_EQ(views::metrics(db, request, 4).thinned_to(), 4u);
  request.add_names("none");
  EXPECT_EQ(views::metrics(db, request).series_size(), 0);
}

TEST_F(ViewsTest, ExportHoldsEveryPointInTableOrder) {
  submit(sweep_of("s", 2, 2));
  for (const storage::TrialId trial : {4u, 3u, 2u, 1u}) complete(trial, trial);
  std::vector<double> values;
  std::vector<std::string> rows;
  export_points(db, "s", [&](const v1::ExportBlock& block) {
    rows.push_back(block.row() + std::to_string(block.seed()));
    values.push_back(block.series().values(0));
  });
  EXPECT_THAT(rows, ElementsAre("a0", "a1", "b0", "b1"));
  EXPECT_THAT(values, ElementsAre(1, 3, 2, 4));
}

TEST_F(ViewsTest, WorkersAreListedWithSlotsAndRuns) {
  storage::WorkerStore workers{db};
  workers.upsert({.name = "alice",
                  .host = "h",
                  .version = "0.1",
                  .slots_json = R"([{"index":0,"device":"cuda:0","name":"GPU","threads":4},{"index":1}])",
                  .data_json = R"(["shapes","cifar10"])",
                  .weights_json = R"(["regnet"])",
                  .result_version = 1,
                  .connected = true,
                  .last_heartbeat = now});
  workers.upsert({.name = "bob"});
  workers.upsert({.name = "carl", .connected = true});
  workers.heartbeat("carl", now, "cannot write /x: No space left on device");
  submit(sweep_of("s", 1, 1));
  const auto run_id = trials.lease(1, "alice", "h", now, now + 30s, {1})->run;
  auto list = list_workers(db);
  ASSERT_EQ(list.workers_size(), 3);
  EXPECT_EQ(list.workers(0).slots(0).device(), "cuda:0");
  EXPECT_EQ(list.workers(0).slots(0).run(), 0u);
  EXPECT_EQ(list.workers(0).slots(1).run(), run_id);
  EXPECT_THAT(list.workers(0).data(), ElementsAre("shapes", "cifar10"));
  EXPECT_THAT(list.workers(0).weights(), ElementsAre("regnet"));
  EXPECT_THAT(list.workers(0).runs(), ElementsAre(run_id));
  EXPECT_EQ(list.workers(1).trouble(), "cannot write /x: No space left on device");
  EXPECT_EQ(list.workers(1).note(), list.workers(1).trouble());
  EXPECT_EQ(list.workers(2).note(), "not connected") << "those that are connected come first";
  trials.end(run_id, {}, now);
  list = list_workers(db);
  EXPECT_EQ(list.workers(0).slots(1).run(), 0u) << "its run has ended";
}

TEST_F(ViewsTest, WorkersAreListedInParts) {
  storage::WorkerStore workers{db};
  for (const char* name : {"alice", "bob", "carl", "dora"})
    workers.upsert({.name = name, .connected = name != std::string{"bob"}});
  const auto part = [&](std::uint32_t first, std::uint32_t count) {
    const auto list = list_workers(db, {.first = first, .count = count});
    std::string text;
    for (const auto& worker : list.workers()) text += worker.name() + " ";
    return text + fmt::format("left out {}, next {}", list.left_out(), list.next());
  };
  EXPECT_EQ(part(0, 2), "alice carl left out 2, next 2");
  EXPECT_EQ(part(2, 2), "dora bob left out 2, next 0");
  EXPECT_EQ(part(0, 500), "alice carl dora bob left out 0, next 0");
  EXPECT_EQ(part(9, 2), "left out 4, next 0");
}

TEST_F(ViewsTest, WorkersSayWhatTheirRunsTakeOfThemNow) {
  storage::WorkerStore workers{db};
  for (const char* name : {"alice", "bob", "carl"}) workers.upsert({.name = name, .connected = true});
  submit(sweep_of("s", 2, 2));
  const auto first = trials.lease(1, "alice", "h", now, now + 30s, {0})->run;
  const auto second = trials.lease(2, "alice", "h", now, now + 30s, {1})->run;
  const auto third = trials.lease(3, "bob", "h", now, now + 30s, {0})->run;
  storage::ResourceStore samples{db};
  samples.add(first, {{.at_ms = 1000, .over_ms = 1000, .cpu_cores = 7, .gpu = 0.1},
                      {.at_ms = 2000, .over_ms = 1000, .cpu_cores = 1.5, .gpu = 0.9}});
  samples.add(second, {{.at_ms = 9000, .over_ms = 1000, .cpu_cores = 2, .gpu = 0.5}});
  samples.add(third, {{.at_ms = 1000, .over_ms = 1000, .cpu_cores = 0.5}});
  auto list = list_workers(db);
  ASSERT_EQ(list.workers_size(), 3);
  EXPECT_DOUBLE_EQ(list.workers(0).cpu_cores(), 3.5) << "the newest samples, together";
  EXPECT_DOUBLE_EQ(list.workers(0).gpu(), 0.7) << "their mean";
  EXPECT_DOUBLE_EQ(list.workers(1).cpu_cores(), 0.5);
  EXPECT_FALSE(list.workers(1).has_gpu()) << "no run says";
  EXPECT_FALSE(list.workers(2).has_cpu_cores()) << "nothing runs there";
  trials.end(second, {}, now);
  list = list_workers(db);
  EXPECT_DOUBLE_EQ(list.workers(0).cpu_cores(), 1.5) << "one run has ended";
}

TEST_F(ViewsTest, WhatIsNotThereIsNamedWithTheNearestName) {
  submit(sweep_of("msf-sharing", 1, 1));
  const auto expect = [](const std::pair<Code, std::string>& error, const std::string& words) {
    EXPECT_EQ(error.first, Code::kNotFound);
    EXPECT_THAT(error.second, HasSubstr(words));
  };
  expect(storage::error_of([&] { sweep_detail(db, "msf-sharin"); }), "did you mean 'msf-sharing'?");
  expect(storage::error_of([&] { table(db, "msf-sharin"); }), "did you mean 'msf-sharing'?");
  expect(storage::error_of([&] { run_detail(db, 5); }), "nothing has run yet");
  run(1);
  expect(storage::error_of([&] { run_detail(db, 5); }), "the newest is 1");
  v1::GetMetricsRequest request;
  request.add_runs(9);
  expect(storage::error_of([&] { views::metrics(db, request); }), "run 9");
}

TEST(JsonTest, NamesAreThoseOfTheProtoAndZerosArePresent) {
  v1::MetricSummary message;
  message.set_name("val/top1");
  message.set_last_step(7);
  message.set_last(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(
      to_json(message),
      R"({"name":"val/top1","count":0,"min":0,"max":0,"mean":0,"last":"NaN","last_step":7,"best":0,"best_step":0,"finite":0})");
  EXPECT_EQ(to_json(v1::ListRunsResponse{}), R"({"runs":[],"left_out":0})");
  EXPECT_THAT(to_json(message, true), HasSubstr("\n"));
}

}  // namespace
}  // namespace abl::views
