// SPDX-License-Identifier: Apache-2.0
// Answers to who reads: exports, pages, bounds, and what is not done for a caller who has gone.
#include <fstream>
#include <set>

#include "scheduler/counter.h"
#include "tests/scheduler/services_fixture.h"

namespace abl::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(ServicesTest, AnExportHasEveryPoint) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  for (std::uint32_t step = 1; step <= 3; ++step) worker->say(measured(run, step, step, step));
  worker->say(ended(run, 4));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(worker->hear().has_ack());
  Patience context;
  const auto stream = runs->Export(&context, sweep_request("s"));
  ExportBlock block;
  std::vector<double> values;
  while (stream->Read(&block))
    values.insert(values.end(), block.series().values().begin(), block.series().values().end());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(values, ElementsAre(1, 2, 3));
}

TEST_F(ServicesTest, AReaderWhoStopsHoldsUpNoOther) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  auto batch = started(run, 1);
  for (int i = 0; i < 100; ++i) {
    Series& series = *batch.add_series();
    series.set_name("m" + std::to_string(i));
    series.add_steps(1);
    series.add_values(1);
    series.add_times_ms(1);
  }
  batch.set_log(std::string(1 << 20, 'x'));
  worker->say(batch);
  EXPECT_EQ(worker->hear().ack().seq(), 1u);
  std::vector<std::unique_ptr<Patience>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<ExportBlock>>> exports;
  std::vector<std::unique_ptr<grpc::ClientReader<LogText>>> logs;
  std::vector<std::unique_ptr<grpc::ClientReader<SweepProgress>>> watchers;
  const auto context = [&] { return contexts.emplace_back(std::make_unique<Patience>()).get(); };
  TailLogRequest log;
  log.set_run(run);
  for (int i = 0; i < 8; ++i) {  // more than there are threads
    exports.push_back(runs->Export(context(), sweep_request("s")));
    logs.push_back(runs->TailLog(context(), log));
    watchers.push_back(sweeps->WatchSweep(context(), sweep_request("s")));
    ExportBlock block;
    ASSERT_TRUE(exports.back()->Read(&block));  // and never again
  }
  Patience patience;
  const auto other = runs->Export(&patience, sweep_request("s"));
  ExportBlock block;
  int blocks = 0;
  while (other->Read(&block)) ++blocks;
  EXPECT_TRUE(other->Finish().ok());
  EXPECT_EQ(blocks, 100);
  for (const auto& stopped : contexts) stopped->TryCancel();
}

TEST_F(ServicesTest, ALongSeriesIsExportedInBlocks) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  auto batch = started(run, 1);
  for (std::uint32_t step = 1; step <= 25'000; ++step) {
    Series& series = step == 1 ? *batch.add_series() : *batch.mutable_series(0);
    series.set_name("loss");
    series.add_steps(step);
    series.add_values(step);
    series.add_times_ms(1);
  }
  worker->say(batch);
  EXPECT_EQ(worker->hear().ack().seq(), 1u);
  Patience context;
  const auto reader = runs->Export(&context, sweep_request("s"));
  ExportBlock block;
  std::uint32_t step = 0;
  while (reader->Read(&block)) {
    EXPECT_LE(block.series().steps_size(), 10'000);
    for (const std::uint32_t next : block.series().steps()) EXPECT_EQ(next, ++step);
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(step, 25'000u);
}

TEST_F(ServicesTest, AnAnswerIsBounded) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  {
    Patience context;
    ListRunsRequest request;
    request.set_limit(4'000'000'000);
    ListRunsResponse response;
    const grpc::Status status = runs->ListRuns(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("at most 10000 runs"));
  }
  Patience context;
  GetMetricsRequest request;
  for (std::uint32_t run = 1; run <= 2000; ++run) request.add_runs(run);
  GetMetricsResponse response;
  const grpc::Status status = runs->GetMetrics(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("2000 runs"));
}

std::string with_seeds(int count) {
  std::string seeds = "0", text = kSweep;
  for (int seed = 1; seed < count; ++seed) seeds += ", " + std::to_string(seed);
  return text.replace(text.find("seeds: [0]"), 10, "seeds: [" + seeds + "]");
}

TEST_F(ServicesTest, RowsAreAnsweredPageByPage) {
  ASSERT_TRUE(submit(file_of("s", with_seeds(3))).ok());
  SweepRequest request = sweep_request("s");
  request.set_count(1);
  for (const std::uint32_t first : {0u, 1u}) {
    request.set_first(first);
    Patience context;
    SweepDetail detail;
    ASSERT_TRUE(sweeps->GetSweep(&context, request, &detail).ok());
    const Table table = table_of(request);
    EXPECT_EQ(detail.trials_size(), 3);
    EXPECT_EQ(detail.trials(0).row(), first == 0 ? "a" : "b");
    EXPECT_EQ(detail.left_out(), 3u);
    ASSERT_EQ(table.rows_size(), 1);
    EXPECT_EQ(table.rows(0).id(), first == 0 ? "a" : "b");
    EXPECT_EQ(detail.next(), first == 0 ? 1u : 0u);
    EXPECT_EQ(table.next(), first == 0 ? 1u : 0u);
  }
}

TEST_F(ServicesTest, ALongTableIsOfOneMomentThoughItComesInParts) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  change(R"sql(
      WITH RECURSIVE n (x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n WHERE x < 25000)
      INSERT INTO sweep_row (sweep_id, position, id, label, set_json, config_hash, model_hash)
      SELECT 1, x, 'r' || x, 'before', '{}', 'h', '' FROM n)sql");
  Patience context;
  const auto stream = sweeps->GetTable(&context, sweep_request("s"));
  Table part;
  ASSERT_TRUE(stream->Read(&part));
  EXPECT_EQ(part.rows_size(), 10'000);
  EXPECT_EQ(part.left_out(), 15'001u);
  EXPECT_EQ(part.next(), 10'000u);
  change("UPDATE sweep_row SET label = 'after'");
  int rows = part.rows_size(), parts = 1;
  for (; stream->Read(&part); ++parts) {
    rows += part.rows_size();
    EXPECT_EQ(part.rows(0).label(), "before");
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(rows, 25'001);
  EXPECT_EQ(parts, 3);
  stop();  // of which a scheduler heard nothing
  start();
  SweepRequest request = sweep_request("s");
  request.set_first(12'000);
  request.set_count(10'001);
  Patience other;
  const auto some = sweeps->GetTable(&other, request);
  ASSERT_TRUE(some->Read(&part));
  EXPECT_EQ(part.rows(0).label(), "after");
  ASSERT_TRUE(some->Read(&part));
  EXPECT_EQ(part.rows_size(), 1);
  EXPECT_EQ(part.rows(0).id(), "r22000");
  EXPECT_EQ(part.next(), 22'001u);
  EXPECT_FALSE(some->Read(&part));
  EXPECT_TRUE(some->Finish().ok());
}

TEST_F(ServicesTest, SweepsAreListedToTheLast) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  change(R"sql(
      WITH RECURSIVE n (x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM n WHERE x < 10002)
      INSERT INTO sweep (id, name, file, text, canonical, canonical_hash, baseline, paper_heading, state, state_ms, priority, created_ms)
      SELECT x, 'n' || x, '', '', '{}', '', '', '', 'active', 0, 0, 0 FROM n)sql");
  ListSweepsRequest request;
  ListSweepsResponse list;
  std::set<std::string> names;
  do {
    Patience context;
    ASSERT_TRUE(sweeps->ListSweeps(&context, request, &list).ok());
    for (const auto& sweep : list.sweeps()) names.insert(sweep.name());
    EXPECT_EQ(list.left_out(), 10'002u - static_cast<std::uint32_t>(list.sweeps_size()));
    request.set_after(list.next());
  } while (!list.next().empty());
  EXPECT_EQ(names.size(), 10'002u);
  EXPECT_EQ(list.sweeps().rbegin()->name(), "s");
}

TEST_F(ServicesTest, AWatcherHearsNoMoreOfATrialThatDidNotChange) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.slots = 1});
  const std::uint32_t first = worker->hear().assign().run();
  auto batch = measured(first, 1, 80);
  for (int i = 0; i < 100; ++i) {  // in a map, whose order is another each time
    Series& series = *batch.add_series();
    series.set_name("m" + std::to_string(i));
    series.add_steps(1);
    series.add_values(i);
    series.add_times_ms(1);
  }
  worker->say(batch);
  worker->say(ended(first, 2));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker->hear().has_ack());
  const std::uint32_t second = worker->hear().assign().run();
  Patience context;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  EXPECT_EQ(progress.trials_size(), 2);
  for (std::uint32_t step = 1; step <= 5; ++step) {
    worker->say(measured(second, step, step));
    ASSERT_TRUE(worker->hear().has_ack());
    ASSERT_TRUE(watch->Read(&progress));
    ASSERT_EQ(progress.trials_size(), 1) << "the completed one is as it was";
    EXPECT_EQ(progress.trials(0).run(), second);
  }
  context.TryCancel();
}

TEST_F(ServicesTest, AWatcherOfALongSweepHearsOfItsTrialsInSeveralMessages) {
  ASSERT_TRUE(submit(file_of("s", with_seeds(1500))).ok());
  Patience context;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  std::set<std::pair<std::string, std::int64_t>> trials;
  int messages = 0;
  do {
    ASSERT_TRUE(watch->Read(&progress));
    EXPECT_LE(progress.trials_size(), 2000);
    for (const TrialSummary& trial : progress.trials()) trials.emplace(trial.row(), trial.seed());
    ++messages;
  } while (!progress.has_table());
  EXPECT_EQ(trials.size(), 3000u);
  EXPECT_GT(messages, 1);
  context.TryCancel();
}

TEST_F(ServicesTest, AnAnswerHasRoomBeforeItIsThere) {
  storage::ReadPool pool{folder / "results.db", 1};
  storage::ReadPool::Room first{pool};
  first.resize(storage::ReadPool::kMostBytes - (1 << 20));
  {
    storage::ReadPool::Room second{pool};
    EXPECT_THROW(second.resize(2 << 20), Error);
    second.resize(1 << 20);
    EXPECT_THROW(first.resize(storage::ReadPool::kMostBytes), Error) << "and keeps what it has";
  }
  first.resize(storage::ReadPool::kMostBytes);
  first.resize(0);
  storage::ReadPool::Room third{pool};
  third.resize(storage::ReadPool::kMostBytes);
}

/// What reads `point` never ends by itself.
TEST_F(ServicesTest, AQueryEndsWithItsCall) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  worker->say(started(run, 1));
  worker->say(measured(run, 2, 70));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker->hear().has_ack());
  change(R"sql(
      ALTER TABLE point RENAME TO point_kept;
      CREATE VIEW point AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
      SELECT -x AS run_id, -x AS metric_id, -x AS step, 1.0 AS value, NULL AS kind, -x AS time_ms FROM n)sql");
  GetMetricsRequest request;
  request.add_runs(run);
  for (int i = 0; i < 8; ++i) {  // more than there are threads
    grpc::ClientContext impatient;
    impatient.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds{100});
    GetMetricsResponse response;
    EXPECT_FALSE(runs->GetMetrics(&impatient, request, &response).ok());
  }
  Patience context;
  SweepDetail detail;
  EXPECT_TRUE(sweeps->GetSweep(&context, sweep_request("s"), &detail).ok());
}

TEST_F(CoordinatorTest, NothingIsCountedForACallerWhoHasGone) {
  const auto trainer = folder / "trainer", calls = folder / "calls";
  std::ofstream{trainer} << "#!/bin/sh\necho called >> " << calls.string() << "\n";
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  Counter counter{folder / "results.db", planning::ModelCounter{trainer}, *coordinator};
  std::stop_source caller;
  caller.request_stop();
  std::promise<void> answered;
  counter.count(
      {"{}"}, [&](storage::Database&, const planning::ModelCounter::Result&) { answered.set_value(); },
      caller.get_token());
  answered.get_future().wait();
  EXPECT_FALSE(std::filesystem::exists(calls));
}

/// A job that runs until it is stopped.
TEST(ReadPoolTest, AQueryWhoseCallerHasGoneEnds) {
  TemporaryFolder folder;
  storage::Database{folder / "results.db", storage::Database::Mode::kWrite};
  storage::ReadPool pool{folder / "results.db", 1};
  std::stop_source caller;
  std::promise<void> begun;
  std::promise<Code> ended;
  pool.post(
      [&](storage::Database& db) {
        begun.set_value();
        const auto status = status_of([&] {
          db.prepared(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
              .one([](const storage::Statement& row) { return row.integer(0); });
        });
        ended.set_value(static_cast<Code>(status.error_code()));
      },
      caller.get_token());
  begun.get_future().wait();
  caller.request_stop();
  EXPECT_EQ(ended.get_future().get(), Code::kCancelled);
  std::promise<std::int64_t> next;  // whoever comes next is not
  pool.post([&](storage::Database& db) { next.set_value(db.data_version()); });
  EXPECT_GT(next.get_future().get(), 0);
}

}  // namespace
}  // namespace abl::scheduler
