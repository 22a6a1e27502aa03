// SPDX-License-Identifier: Apache-2.0
// Leases and sessions: who holds a trial, and until when.
#include <set>

#include "storage/worker_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using storage::RunState;
using storage::TrialState;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(CoordinatorTest, HeartbeatsKeepALease) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  for (int i = 0; i < 10; ++i) {
    pass(5s);
    heartbeat(worker, {1});
  }
  EXPECT_EQ(run(1).state, RunState::kLeased);
  EXPECT_THAT(worker.take_said(), ElementsAre("welcome"));
}

TEST_F(CoordinatorTest, HeartbeatsOfAWorkerWithoutRunsAreStoredEveryTenSeconds) {
  FakeWorker worker = connect();
  const auto stored = [&] {
    return read([](storage::Database& db) { return storage::WorkerStore{db}.list().at(0).last_heartbeat; });
  };
  std::set<Time> times;
  for (int i = 0; i < 40; ++i) {
    pass(1s);
    heartbeat(worker, {});
    times.insert(stored());
  }
  EXPECT_EQ(times.size(), 4u) << "the first, and then one in ten seconds";
  EXPECT_FALSE(worker.channel->closed()) << "it was heard all the time";

  submit(sweep_of("s", 1, 1));
  times.clear();
  for (int i = 0; i < 5; ++i) {
    pass(1s);
    heartbeat(worker, {1});
    times.insert(stored());
  }
  EXPECT_EQ(times.size(), 5u) << "each that renews a lease";

  FakeWorker again = connect();
  const Time hello = stored();
  pass(1s);
  heartbeat(again, {});
  EXPECT_EQ(stored(), hello + 1s) << "the first of a session";
}

TEST_F(CoordinatorTest, AnExpiredLeaseReturnsTheTrialToTheQueueAndTheStaleAttemptIsFenced) {
  submit(sweep_of("s", 1, 1));
  FakeWorker silent = connect({.name = "silent"});
  say(silent, started(1, 1));
  pass(16s);
  EXPECT_EQ(run(1).state, RunState::kLost);
  EXPECT_TRUE(silent.channel->closed()) << "a session without heartbeats is closed";
  FakeWorker other = connect({.name = "other"});
  const auto assigned = other.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 1u);
  EXPECT_EQ(assigned[0].attempt(), 2u);

  FakeWorker back = connect({.name = "silent", .runs = {1}});
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "fenced 1"));
  say(back, measured(1, 2, 99));
  EXPECT_THAT(back.take_said(), ElementsAre("fenced 1"));
  EXPECT_THAT(read([](storage::Database& db) { return storage::MetricStore{db}.summaries(1); }), IsEmpty());
}

TEST_F(CoordinatorTest, AWorkerThatWasSilentGoesOnWithARunThatNobodyHasTaken) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  worker.take_said();
  pass(16s);  // stopped by SIGSTOP, say
  EXPECT_EQ(run(1).state, RunState::kLost);
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
  EXPECT_THAT(worker.take_said(), IsEmpty()) << "what it finds when it goes on must not end its run";
  ASSERT_TRUE(worker.channel->closed());

  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "ack 1 1"));
  EXPECT_EQ(run(1).state, RunState::kRunning);
  EXPECT_THAT(back.take_assigned(), IsEmpty()) << "its slot is busy, its trial under way";
  say(back, ended(1, 2));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
  EXPECT_EQ(run(1).state, RunState::kCompleted);
}

TEST_F(CoordinatorTest, AClockThatIsSetMovesNoLease) {
  submit(sweep_of("s", 2, 1));
  FakeWorker dead = connect({.name = "dead"}), live = connect({.name = "live"});
  clock.set(-1h);
  for (int i = 0; i < 4; ++i) {
    pass(4s);
    heartbeat(live, {2});
  }
  EXPECT_EQ(run(1).state, RunState::kLost) << "a clock set back keeps no dead worker's trials";
  EXPECT_EQ(run(2).state, RunState::kLeased);
  clock.set(2h);
  pass(1s);
  EXPECT_EQ(run(2).state, RunState::kLeased) << "nor does one set forward take a live worker's";
  EXPECT_FALSE(live.channel->closed());
}

TEST_F(CoordinatorTest, DeadlinesOfAnotherBootAreSetAnew) {
  auto sweep = sweep_of("s", 2, 1);
  sweep.max_retries = 3;
  submit(sweep);
  FakeWorker worker = connect();
  say(worker, ended(1, 1, ablate::v1::RunEnded::STATUS_FAILED));
  EXPECT_GT(trial(1).not_before, clock.steady());
  EXPECT_EQ(trial(2).state, TrialState::kLeased);
  stop();
  clock.boot();  // stored deadlines are half a century away by this clock
  start();
  pass(29s);
  EXPECT_THAT(read([](storage::Database& db) { return storage::TrialStore{db}.under_way_on("w"); }),
              SizeIs(1));
  pass(2s);
  EXPECT_THAT(read([](storage::Database& db) { return storage::TrialStore{db}.under_way_on("w"); }),
              IsEmpty());
  EXPECT_LE(trial(1).not_before, clock.steady()) << "its back-off was of one second, and is over";
}

TEST_F(CoordinatorTest, AMachineThatSleptEndsNoLease) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  clock.pass(1h);  // and no tick in between
  coordinator->tick();
  settle();
  EXPECT_EQ(run(1).state, RunState::kLeased);
  EXPECT_FALSE(worker.channel->closed());
}

TEST_F(CoordinatorTest, ADisconnectedWorkerKeepsItsRunsUntilTheLeaseEnds) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  disconnect(worker);
  pass(5s);
  EXPECT_EQ(run(1).state, RunState::kRunning);
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "ack 1 1"));
  pass(11s);
  EXPECT_EQ(run(1).state, RunState::kRunning) << "coming back renewed the lease";
  EXPECT_THAT(back.take_assigned(), IsEmpty());
}

TEST_F(CoordinatorTest, AWorkerThatComesBackWithoutItsRunLosesItAtOnce) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  disconnect(worker);
  FakeWorker back = connect();
  EXPECT_EQ(run(1).state, RunState::kLost);
  const auto assigned = back.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].attempt(), 2u);
}

TEST_F(CoordinatorTest, ARestartedSchedulerGoesOnWithARunningTrainer) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  stop();
  clock.pass(20s);  // longer than a lease
  start();
  pass(3s);
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_assigned(), IsEmpty()) << "its only slot is busy with the run that goes on";
  say(back, ended(1, 2));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
  EXPECT_EQ(run(1).state, RunState::kCompleted);
  EXPECT_THAT(back.take_assigned(), SizeIs(1)) << "the next trial";
}

TEST_F(CoordinatorTest, AWorkerThatDoesNotReturnAfterARestartLosesItsRuns) {
  submit(sweep_of("s", 1, 1));
  connect();
  stop();
  start();
  pass(29s);
  EXPECT_EQ(run(1).state, RunState::kLeased);
  pass(2s);
  EXPECT_EQ(run(1).state, RunState::kLost);
}

TEST_F(CoordinatorTest, ANewerSessionOfAWorkerReplacesTheOlder) {
  submit(sweep_of("s", 2, 1));
  FakeWorker older = connect();
  FakeWorker newer = connect({.runs = {1}});
  ASSERT_TRUE(older.channel->closed());
  EXPECT_EQ(older.channel->closed()->code(), Code::kAborted);
  disconnect(older);
  say(newer, ended(1, 1));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
  EXPECT_THAT(newer.take_assigned(), SizeIs(1)) << "the end of the older session left the newer one alone";
}

TEST_F(CoordinatorTest, AWorkerWithoutAProtocolInCommonHearsWhichSideIsOlderAndWhatToDo) {
  const auto refusal = [&](std::uint32_t lowest, std::uint32_t highest) {
    ablate::v1::Hello hello = hello_of({});
    hello.set_version("7.8.9");
    hello.set_lowest_protocol(lowest);
    hello.set_highest_protocol(highest);
    try {
      coordinator->open_session(hello, std::make_shared<FakeChannel>());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kFailedPrecondition);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("release 7.8.9"), Not(HasSubstr("\n"))));
      return std::string{error.what()};
    }
    return std::string{"a session of an unknown protocol was opened"};
  };
  EXPECT_THAT(refusal(kHighestProtocol + 2, kHighestProtocol + 3),
              AllOf(HasSubstr("3 to 4"), HasSubstr("1 to 1"), HasSubstr("is newer than this scheduler"),
                    HasSubstr("upgrade the scheduler first")));
  EXPECT_THAT(refusal(0, kLowestProtocol - 1),
              AllOf(HasSubstr("is older than this scheduler"), HasSubstr("'ablate bundle'")));
}

TEST_F(CoordinatorTest, AnUpgradedSchedulerTakesBackTheRunsOfOlderWorkersAndDrainsThem) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  stop();
  start();  // another program with the same store
  ablate::v1::Hello hello = hello_of({.runs = {1}});
  hello.set_version("0.0.1");
  hello.set_result_version(hello.result_version() - 1);
  hello.set_lowest_protocol(0);
  FakeWorker older;
  older.session = coordinator->open_session(hello, older.channel);
  settle();
  const auto welcomed = older.channel->take();
  ASSERT_THAT(welcomed, Not(IsEmpty()));
  EXPECT_EQ(welcomed.front().welcome().protocol(), kHighestProtocol);
  answer_of([&](auto answer) { coordinator->drain("w", "upgrade", false, answer); });
  say(older, batch_of(1, 2));
  say(older, ended(1, 3));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
  EXPECT_EQ(run(1).state, RunState::kCompleted);
  EXPECT_THAT(older.take_assigned(), IsEmpty()) << "and nothing new is given to it";
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  disconnect(older);
  answer_of([&](auto answer) { coordinator->drain("w", std::nullopt, false, answer); });
  FakeWorker upgraded = connect({.instance = "upgraded"});
  EXPECT_THAT(upgraded.take_assigned(), SizeIs(1)) << "the worker that takes its place gets the rest";
}

TEST_F(CoordinatorTest, AnotherWorkerOfTheSameNameIsRefusedWhileTheFirstIsConnected) {
  submit(sweep_of("s", 1, 1));
  FakeWorker first = connect();
  FakeWorker second = connect({.instance = "second"});
  ASSERT_TRUE(second.channel->closed());
  EXPECT_EQ(second.channel->closed()->code(), Code::kAlreadyExists);
  EXPECT_THAT(second.channel->closed()->what(), HasSubstr("--name"));
  EXPECT_FALSE(first.channel->closed());
  say(first, started(1, 1));
  EXPECT_EQ(trial(1).state, TrialState::kRunning) << "the first goes on undisturbed";
  disconnect(first);
  EXPECT_FALSE(connect({.instance = "second"}).channel->closed());
}

TEST_F(CoordinatorTest, ACommitThatTookLongEndsNoLease) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  writer->post([&](storage::Database&) { clock.pass(20s); }, [](std::exception_ptr) {});
  coordinator->tick();  // sees at most the gap
  settle();
  coordinator->tick();
  settle();
  EXPECT_EQ(run(1).state, RunState::kLeased);
  EXPECT_FALSE(worker.channel->closed());
}

/// By the steps of SQLite's machine, which nothing else on the processor changes.
TEST_F(CoordinatorTest, AnEventCostsTheSameAtAHundredAndAtTenThousandQueuedTrials) {
  std::uint32_t next = 1;
  FakeWorker worker = connect({.slots = 2});
  const auto cost = [&] {
    const auto steps = [&] { return writer->call([](storage::Database& db) { return db.steps(); }); };
    const auto post = [&](auto event) {  // without the comparison of the whole queue that `say` brings
      event();
      for (int i = 0; i < 4; ++i) answer_of([&](auto answer) { coordinator->store_counts({}, answer); });
    };
    const std::int64_t before = steps();
    for (int i = 0; i < 10; ++i) {
      ablate::v1::WorkerMessage message;
      *message.mutable_batch() = started(next, 1);
      post([&] { coordinator->receive(worker.session, message); });
      *message.mutable_batch() = measured(next, 2, 80);
      post([&] { coordinator->receive(worker.session, message); });
      *message.mutable_batch() = ended(next, 3);
      post([&] { coordinator->receive(worker.session, message); });
      message.mutable_heartbeat()->add_runs(++next);
      post([&] { coordinator->receive(worker.session, message); });
      post([&] { coordinator->tick(); });
    }
    return steps() - before;
  };
  submit(sweep_of("hundred", 26, 4));
  cost();  // the first runs pin the data
  const std::int64_t at_a_hundred = cost();
  sweeps::SweepSpec large = sweep_of("ten-thousand", 26, 400);
  for (sweeps::Row& row : large.rows) row.config = R"({"large":")" + row.id + R"("})";  // it shares no trial
  submit(large);
  const std::int64_t at_ten_thousand = cost();
  EXPECT_LE(at_ten_thousand, at_a_hundred * 11 / 10);
  worker.look();
  EXPECT_EQ(worker.assigned.size(), 2u + 30u);
}

}  // namespace
}  // namespace abl::scheduler
