// SPDX-License-Identifier: Apache-2.0
// The services as a client sees them: over an in-process channel, with a worker that follows a script.
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <set>

#include "ablate/v1/runs.grpc.pb.h"
#include "ablate/v1/sweeps.grpc.pb.h"
#include "ablate/v1/workers.grpc.pb.h"
#include "scheduler/counter.h"
#include "scheduler/scheduler.h"
#include "storage/removal.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using namespace ablate::v1;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kSweep = R"(ablate: 1
name: NAME
base:
  model: {preset: simple-vit-ti}
  data: {name: shapes}
  recipe: {use: demo}
rows:
  - {id: a, label: "original"}
  - {id: b, label: "shared", set: {model.attention.share: QQQ-W}}
seeds: [0]
table: {columns: [{name: acc, metric: val/top1}]}
)";

SweepFile file_of(const std::string& name, std::string text = kSweep) {
  SweepFile file;
  file.set_path(name + ".yaml");
  if (const auto at = text.find("NAME"); at != std::string::npos) text.replace(at, 4, name);
  file.set_text(text);
  return file;
}

/// A deadline far beyond what any call takes: a hanging test ends.
struct Patience : grpc::ClientContext {
  Patience() { set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{60}); }
};

/// A worker's stream that follows the script of a test.
class ScriptedWorker {
 public:
  explicit ScriptedWorker(const std::shared_ptr<grpc::Channel>& channel)
      : stub_{WorkerLink::NewStub(channel)}, stream_{stub_->Session(&context_)} {}

  void hello(const Hello& hello) {
    WorkerMessage message;
    *message.mutable_hello() = hello;
    stream_->Write(message);
  }
  void say(const RunBatch& batch) {
    WorkerMessage message;
    *message.mutable_batch() = batch;
    stream_->Write(message);
  }
  /// The next message; empty when the stream has ended.
  SchedulerMessage hear() {
    SchedulerMessage message;
    if (!stream_->Read(&message)) return {};
    return message;
  }
  grpc::Status finish() {
    stream_->WritesDone();
    while (hear().body_case() != SchedulerMessage::BODY_NOT_SET) {
    }
    return stream_->Finish();
  }

 private:
  Patience context_;
  std::unique_ptr<WorkerLink::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, SchedulerMessage>> stream_;
};

class ServicesTest : public testing::Test {
 protected:
  ServicesTest() { start(); }
  ~ServicesTest() override { stop(); }

  void start() {
    scheduler = std::make_unique<Scheduler>(
        SchedulerOptions{
            .store = folder / "results.db", .watch_interval = 0ms, .trainer = folder / "no-trainer"},
        clock);
    grpc::ServerBuilder builder;
    scheduler->register_services(builder);
    server = builder.BuildAndStart();
    channel = server->InProcessChannel({});
    sweeps = Sweeps::NewStub(channel);
    runs = Runs::NewStub(channel);
    workers = Workers::NewStub(channel);
  }
  void stop() {
    scheduler->coordinator().close_sessions();
    server->Shutdown(std::chrono::system_clock::now() + 5s);
    server->Wait();
    server.reset();
    scheduler.reset();
  }

  /// Asks for the removal, and how far it is, until the sweep is gone.
  void wait_until_removed(RemoveSweepRequest request) {
    for (RemoveSweepResponse removed; !removed.gone(); request.set_id(removed.id())) {
      Patience context;
      ASSERT_TRUE(sweeps->RemoveSweep(&context, request, &removed).ok());
    }
  }

  grpc::Status submit(const SweepFile& file, SubmitResponse* response = nullptr) {
    Patience context;
    SubmitRequest request;
    *request.mutable_file() = file;
    SubmitResponse ignored;
    return sweeps->Submit(&context, request, response ? response : &ignored);
  }
  /// A table that comes in one message.
  Table table_of(const SweepRequest& request) {
    Patience context;
    const auto stream = sweeps->GetTable(&context, request);
    Table table, more;
    EXPECT_TRUE(stream->Read(&table));
    EXPECT_FALSE(stream->Read(&more));
    EXPECT_TRUE(stream->Finish().ok());
    return table;
  }
  /// Changes the results file beside the scheduler.
  void change(const char* sql) {
    storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(sql);
  }
  /// Connects and hears Welcome.
  std::unique_ptr<ScriptedWorker> connect(const WorkerOptions& options = {}) {
    auto worker = std::make_unique<ScriptedWorker>(channel);
    worker->hello(hello_of(options));
    EXPECT_TRUE(worker->hear().has_welcome());
    return worker;
  }

  TemporaryFolder folder;
  FakeClock clock;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Sweeps::Stub> sweeps;
  std::unique_ptr<Runs::Stub> runs;
  std::unique_ptr<Workers::Stub> workers;
};

SweepRequest sweep_request(const std::string& name) {
  SweepRequest request;
  request.set_sweep(name);
  return request;
}

TEST_F(ServicesTest, ASweepGoesFromItsFileToItsTable) {
  SubmitResponse submitted;
  ASSERT_TRUE(submit(file_of("s"), &submitted).ok());
  EXPECT_TRUE(submitted.created());
  EXPECT_EQ(submitted.new_trials(), 2u);
  EXPECT_EQ(submitted.sweep().state(), SWEEP_STATE_ACTIVE);
  const auto worker = connect({.slots = 1});
  for (std::uint32_t run = 1; run <= 2; ++run) {
    const SchedulerMessage assign = worker->hear();
    ASSERT_EQ(assign.assign().run(), run);
    worker->say(started(run, 1));
    worker->say(measured(run, 2, 70.0 + run));
    worker->say(ended(run, 3));
    for (std::uint64_t seq = 1; seq <= 3; ++seq) EXPECT_EQ(worker->hear().ack().seq(), seq);
  }
  const Table table = table_of(sweep_request("s"));
  ASSERT_EQ(table.rows_size(), 2);
  EXPECT_EQ(table.rows(0).cells(0).text(), "71.00");
  EXPECT_EQ(table.rows(1).cells(0).text(), "72.00");
  EXPECT_TRUE(worker->finish().ok());
}

TEST_F(ServicesTest, ABadFileIsRefusedWithALineForEachProblem) {
  const grpc::Status status = submit(file_of("s", "ablate: 1\nname: s\nbsae: {}\nrows: []\nseeds: []\n"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("s.yaml:3:1: bsae:"), HasSubstr("\ns.yaml:5:")));
  Patience context;
  ValidateRequest request;
  *request.mutable_file() = file_of("s", "ablate: 1\nname: s\nbsae: {}\nrows: []\nseeds: []\n");
  ValidateResponse response;
  ASSERT_TRUE(sweeps->Validate(&context, request, &response).ok());
  EXPECT_GE(response.problems_size(), 2);
}

TEST_F(ServicesTest, TheSameFileIsTheSameSweepAndAnotherIsRefused) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  SubmitResponse again;
  ASSERT_TRUE(submit(file_of("s"), &again).ok());
  EXPECT_FALSE(again.created());
  std::string other = kSweep;
  other.replace(other.find("QQQ-W"), 5, "QKK-W");
  EXPECT_EQ(submit(file_of("s", other)).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(ServicesTest, APlanStoresNoSweepAndSaysWhyCountsAreMissing) {
  Patience context, other;
  PlanRequest request;
  *request.mutable_file() = file_of("s");
  SweepPlan plan;
  ASSERT_TRUE(sweeps->Plan(&context, request, &plan).ok());
  EXPECT_EQ(plan.trials(), 2u);
  EXPECT_THAT(plan.counts_missing(), HasSubstr("trainer"));
  ListSweepsResponse list;
  ASSERT_TRUE(sweeps->ListSweeps(&other, {}, &list).ok());
  EXPECT_EQ(list.sweeps_size(), 0);
}

TEST_F(ServicesTest, AnUnknownSweepIsNotFound) {
  ASSERT_TRUE(submit(file_of("msf-sharing")).ok());
  Patience context, other;
  SweepDetail detail;
  const grpc::Status status = sweeps->GetSweep(&context, sweep_request("msf-sharin"), &detail);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("msf-sharing"));
  SweepSummary summary;
  EXPECT_EQ(sweeps->CancelSweep(&other, sweep_request("x"), &summary).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, CancelAnswersWithTheSweepAsItIsThen) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context, other;
  SweepSummary summary;
  ASSERT_TRUE(sweeps->CancelSweep(&context, sweep_request("s"), &summary).ok());
  EXPECT_EQ(summary.state(), SWEEP_STATE_CANCELLED);
  PauseSweepRequest pause;
  pause.set_sweep("s");
  EXPECT_EQ(sweeps->PauseSweep(&other, pause, &summary).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServicesTest, ASweepIsRemovedAndItsFileCanBeSubmittedAgain) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  RemoveSweepRequest request;
  request.set_sweep("s");
  RemoveSweepResponse removed;
  {
    Patience context;
    const grpc::Status status = sweeps->RemoveSweep(&context, request, &removed);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(status.error_message(), HasSubstr("ablate cancel s"));
  }
  SweepSummary summary;
  Patience cancel;
  ASSERT_TRUE(sweeps->CancelSweep(&cancel, sweep_request("s"), &summary).ok());
  wait_until_removed(request);
  SubmitResponse again;
  ASSERT_TRUE(submit(file_of("s"), &again).ok());
  EXPECT_TRUE(again.created());
  EXPECT_EQ(again.new_trials(), 2u);
}

TEST_F(ServicesTest, ARemovalThatWasBegunGoesOnWithTheNextStart) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  SweepSummary summary;
  Patience cancel;
  ASSERT_TRUE(sweeps->CancelSweep(&cancel, sweep_request("s"), &summary).ok());
  stop();
  RemoveSweepRequest request;
  {
    storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
    request.set_id(storage::Removal{db}.begin("s", clock.now()));
  }
  start();
  wait_until_removed(request);
}

TEST_F(ServicesTest, WhoWatchesASweepHearsThatItHasAnotherName) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context, renaming;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  RenameSweepRequest request;
  request.set_sweep("s");
  request.set_name("not a name");
  SweepSummary summary;
  {
    Patience other;
    EXPECT_EQ(sweeps->RenameSweep(&other, request, &summary).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  request.set_name("t");
  ASSERT_TRUE(sweeps->RenameSweep(&renaming, request, &summary).ok());
  EXPECT_EQ(summary.name(), "t");
  while (watch->Read(&progress)) {
  }
  const grpc::Status end = watch->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(end.error_message(), "sweep s was renamed: it is now t");
  SubmitResponse same;
  ASSERT_TRUE(submit(file_of("t"), &same).ok());
  EXPECT_FALSE(same.created()) << "the file with its new name is this sweep";
}

TEST_F(ServicesTest, AWatcherSeesEveryTrialOnceAndTheEnd) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  Patience context;
  const auto watch = sweeps->WatchSweep(&context, sweep_request("s"));
  SweepProgress progress;
  ASSERT_TRUE(watch->Read(&progress));
  EXPECT_EQ(progress.trials_size(), 2);
  EXPECT_EQ(progress.summary().trials().queued(), 2u);
  const auto worker = connect({.slots = 2});
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t run = worker->hear().assign().run();
    worker->say(measured(run, 1, 80));
    worker->say(ended(run, 2));
  }
  while (watch->Read(&progress)) {
  }
  EXPECT_TRUE(watch->Finish().ok());
  EXPECT_EQ(progress.summary().state(), SWEEP_STATE_COMPLETED);
  EXPECT_EQ(progress.table().rows_size(), 2);
}

TEST_F(ServicesTest, AFollowedLogEndsWithItsRun) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect();
  const std::uint32_t run = worker->hear().assign().run();
  RunBatch first = started(run, 1);
  first.set_log("step 1\n");
  worker->say(first);
  EXPECT_EQ(worker->hear().ack().seq(), 1u);

  Patience context;
  TailLogRequest request;
  request.set_run(run);
  request.set_follow(true);
  const auto log = runs->TailLog(&context, request);
  LogText text;
  ASSERT_TRUE(log->Read(&text));
  EXPECT_EQ(text.text(), "step 1\n");
  RunBatch last = ended(run, 2);
  last.set_log("step 2\n");
  worker->say(last);
  ASSERT_TRUE(log->Read(&text));
  EXPECT_EQ(text.text(), "step 2\n");
  EXPECT_EQ(text.offset(), 7u);
  EXPECT_FALSE(log->Read(&text));
  EXPECT_TRUE(log->Finish().ok());
}

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

TEST_F(ServicesTest, NothingIsSubmittedIntoAFileThatWasDeleted) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  for (const char* end : {"", "-wal", "-shm"})
    std::filesystem::remove(folder / ("results.db" + std::string{end}));
  SubmitResponse response;
  const grpc::Status status = submit(file_of("t"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("results.db was deleted"), HasSubstr("start it again")));
  EXPECT_EQ(status.error_message().find('\n'), std::string::npos);
  EXPECT_EQ(response.new_trials(), 0u);
}

TEST_F(CoordinatorTest, NothingIsCountedForACallerWhoHasGone) {
  const auto trainer = folder / "trainer", calls = folder / "calls";
  std::ofstream{trainer} << "#!/bin/sh\necho called >> " << calls.string() << "\n";
  std::filesystem::permissions(trainer, std::filesystem::perms::owner_all);
  Counter counter{folder / "results.db", trainer, *coordinator};
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

TEST_F(ServicesTest, ASessionThatDoesNotBeginWithHelloIsRefused) {
  ScriptedWorker worker{channel};
  worker.say(started(1, 1));
  EXPECT_EQ(worker.finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServicesTest, ANewerWorkerHearsWhichProtocolsAreSpoken) {
  Hello hello = hello_of({});
  hello.set_lowest_protocol(2);
  hello.set_highest_protocol(3);
  ScriptedWorker worker{channel};
  worker.hello(hello);
  const grpc::Status status = worker.finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("2 to 3"), HasSubstr("1 to 1")));
}

TEST_F(ServicesTest, WorkersAreListedConnectedAndNot) {
  const auto worker = connect({.name = "gpu-box", .slots = 2});
  const auto listed = [&] {
    Patience context;
    ListWorkersResponse response;
    EXPECT_TRUE(workers->ListWorkers(&context, {}, &response).ok());
    return response;
  };
  ListWorkersResponse list = listed();
  ASSERT_EQ(list.workers_size(), 1);
  EXPECT_EQ(list.workers(0).name(), "gpu-box");
  EXPECT_EQ(list.workers(0).slots_size(), 2);
  EXPECT_TRUE(list.workers(0).connected());
  stop();
  start();
  EXPECT_FALSE(listed().workers(0).connected()) << "nobody is connected to a scheduler that has just started";
}

TEST_F(ServicesTest, AListedSlotNamesItsRunUntilThatEnds) {
  ASSERT_TRUE(submit(file_of("s")).ok());
  const auto worker = connect({.slots = 3});
  const auto slots = [&] {
    Patience context;
    ListWorkersResponse response;
    EXPECT_TRUE(workers->ListWorkers(&context, {}, &response).ok());
    std::vector<std::uint32_t> held;
    for (const Slot& slot : response.workers(0).slots()) held.push_back(slot.run());
    return held;
  };
  EXPECT_TRUE(worker->hear().has_assign());
  EXPECT_TRUE(worker->hear().has_assign());
  EXPECT_THAT(slots(), ElementsAre(1, 2, 0));
  worker->say(ended(1, 1));
  EXPECT_TRUE(worker->hear().has_ack());
  EXPECT_THAT(slots(), ElementsAre(0, 2, 0));
}

TEST_F(ServicesTest, AStoppingSchedulerSaysGoodbye) {
  const auto worker = connect();
  stop();
  EXPECT_EQ(worker->finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  start();
}

}  // namespace
}  // namespace abl::scheduler
