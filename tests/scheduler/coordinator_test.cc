// SPDX-License-Identifier: Apache-2.0
#include "scheduler/coordinator.h"

#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using storage::RunState;
using storage::TrialState;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

TEST_F(CoordinatorTest, TheSameSweepIsStoredOnce) {
  const Submission first = submit(sweep_of("s", 2, 3));
  EXPECT_TRUE(first.created);
  EXPECT_EQ(first.new_trials, 6u);
  const Submission again = submit(sweep_of("s", 2, 3));
  EXPECT_FALSE(again.created);
  EXPECT_EQ(read([](storage::Database& db) { return storage::SweepStore{db}.list().size(); }), 1u);
}

TEST_F(CoordinatorTest, ATakenNameWithAnotherContentIsRefusedWithTheDifference) {
  submit(sweep_of("s", 2, 1));
  const auto [code, message] =
      answer_of([&](auto answer) { coordinator->submit(sweep_of("s", 3, 1), 0, answer); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, AllOf(HasSubstr("sweep s "), HasSubstr("\nrows.c: only here")));
}

TEST_F(CoordinatorTest, EveryRowsFirstSeedRunsBeforeTheSecondSeed) {
  submit(sweep_of("s", 3, 2));
  FakeWorker worker = connect({.slots = 4});
  std::vector<std::pair<std::string, std::int64_t>> order;
  for (const auto& assign : worker.take_assigned()) order.emplace_back(assign.config_json(), assign.seed());
  ASSERT_THAT(order, SizeIs(4));
  EXPECT_THAT((std::vector<std::int64_t>{order[0].second, order[1].second, order[2].second, order[3].second}),
              ElementsAre(0, 0, 0, 1));
}

TEST_F(CoordinatorTest, TwoTrialsAreNeverInOneSlot) {
  submit(sweep_of("s", 4, 2));
  FakeWorker worker = connect({.slots = 2});
  auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(2));
  EXPECT_NE(assigned[0].slots(0), assigned[1].slots(0));
  coordinator->tick();
  EXPECT_THAT(worker.take_assigned(), IsEmpty()) << "both slots are busy";
  say(worker, started(assigned[0].run(), 1));
  say(worker, ended(assigned[0].run(), 2));
  const auto next = worker.take_assigned();
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].slots(0), assigned[0].slots(0));
}

TEST_F(CoordinatorTest, ARunIsAcknowledgedAndCompletesItsTrial) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  EXPECT_THAT(worker.take_said(), ElementsAre("welcome"));
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].data(), "shapes");
  EXPECT_EQ(assigned[0].attempt(), 1u);
  say(worker, started(1, 1));
  EXPECT_EQ(trial(1).state, TrialState::kRunning);
  say(worker, measured(1, 2, 81.5));
  say(worker, ended(1, 3));
  EXPECT_THAT(worker.take_said(), ElementsAre("ack 1 1", "ack 1 2", "ack 1 3"));
  EXPECT_EQ(trial(1).state, TrialState::kCompleted);
}

TEST_F(CoordinatorTest, ABatchThatComesTwiceIsStoredOnceAndAcknowledgedTwice) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, measured(1, 2, 50));
  say(worker, measured(1, 2, 50));
  auto last = ended(1, 3);
  last.set_log("done\n");
  say(worker, last);
  say(worker, last);
  EXPECT_THAT(worker.take_said(),
              ElementsAre("welcome", "ack 1 1", "ack 1 2", "ack 1 2", "ack 1 3", "ack 1 3"));
  const auto [points, log] = read([](storage::Database& db) {
    const storage::MetricStore metrics{db};
    return std::pair{metrics.summaries(1).at(0).count, metrics.log(1, 0, 100)};
  });
  EXPECT_EQ(points, 1u);
  EXPECT_EQ(log, "done\n");
}

TEST_F(CoordinatorTest, AMissingBatchEndsTheSessionSoThatTheWorkerSendsItAgain) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 3));
  ASSERT_TRUE(worker.channel->closed());
  EXPECT_EQ(worker.channel->closed()->code(), Code::kFailedPrecondition);
  EXPECT_EQ(trial(1).state, TrialState::kRunning) << "nothing of batch 3 is stored";
}

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
  EXPECT_EQ(trial(1).attempt, 1);
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

TEST_F(CoordinatorTest, AnotherProtocolIsRefusedWithBothRanges) {
  ablate::v1::Hello hello = hello_of({});
  hello.set_lowest_protocol(3);
  hello.set_highest_protocol(4);
  try {
    coordinator->open_session(hello, std::make_shared<FakeChannel>());
    FAIL() << "a session of an unknown protocol was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("3 to 4"), HasSubstr("1 to 1")));
  }
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

TEST_F(CoordinatorTest, ATrialThatKillsItsWorkerAgainAndAgainFails) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  for (int attempt = 1; attempt <= storage::TrialStore::kLossesInARow; ++attempt) {
    const auto assigned = worker.take_assigned();
    ASSERT_THAT(assigned, SizeIs(1)) << attempt;
    disconnect(worker);  // killed, and started again with what is in its spool
    worker = connect({.instance = std::to_string(attempt), .runs = {assigned[0].run()}});
    say(worker, ended(assigned[0].run(), 1, RunEnded::STATUS_LOST, "its worker was killed"));
  }
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_THAT(trial(1).reason, HasSubstr("its worker was killed; so ended 5 attempts in a row"));
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

TEST_F(CoordinatorTest, AResumedSweepTakesBackAStopThatItsWorkerHasNotHeard) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  disconnect(worker);
  answer_of([&](auto answer) { coordinator->pause("s", true, answer); });
  answer_of([&](auto answer) { coordinator->resume("s", answer); });
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Not(Contains(HasSubstr("stop"))));
}

TEST_F(CoordinatorTest, AWorkerWithOtherDataThanThePinnedGetsNoTrialOfThatDataAndSpoilsNone) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1, "f1"));
  say(worker, ended(1, 2));
  EXPECT_EQ(worker.take_assigned().back().data_fingerprint(), "f1");
  say(worker, started(2, 1, "f2"));
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
  EXPECT_THAT(trial(2).reason, AllOf(HasSubstr("f1"), HasSubstr("f2"), HasSubstr("worker 'w'")));
  EXPECT_THAT(worker.take_said(), Contains("fenced 2"));
  EXPECT_THAT(worker.take_assigned(), IsEmpty());
  FakeWorker right = connect({.name = "right"});
  ASSERT_THAT(right.take_assigned(), SizeIs(1));
  say(right, started(3, 1, "f1"));
  EXPECT_EQ(trial(2).state, TrialState::kRunning);
}

TEST_F(CoordinatorTest, ARefusedTrialGoesToAnotherWorker) {
  submit(sweep_of("s", 1, 1));
  FakeWorker picky = connect({.name = "picky"});
  refuse(picky, 1, "no room on the disk", false);
  EXPECT_THAT(picky.take_assigned(), SizeIs(1)) << "the first assignment, and no second";
  EXPECT_EQ(trial(1).reason, "worker picky refused it: no room on the disk");
  FakeWorker other = connect({.name = "other"});
  EXPECT_THAT(other.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, ATrialThatCanNeverRunFailsAtOnce) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  refuse(worker, 1, "argv[0] is no program", true);
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_THAT(trial(1).reason, HasSubstr("argv[0] is no program"));
}

TEST_F(CoordinatorTest, CancelStopsWhatRunsAndNothingFollows) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  EXPECT_EQ(answer_of([&](auto answer) { coordinator->cancel("s", answer); }).first, Code::kOk);
  settle();
  EXPECT_THAT(worker.take_said(), Contains("stop 1 cancelled"));
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED));
  EXPECT_EQ(trial(1).state, TrialState::kCancelled);
  EXPECT_EQ(trial(2).state, TrialState::kCancelled);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, AWorkerThatWasAwayDuringTheCancelHearsOfItWhenItReturns) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  disconnect(worker);
  answer_of([&](auto answer) { coordinator->cancel("s", answer); });
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Contains("stop 1 cancelled"));
}

TEST_F(CoordinatorTest, APausedSweepWaitsAndGoesOnWhenResumed) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { coordinator->pause("s", true, answer); });
  settle();
  EXPECT_THAT(worker.take_said(), Contains("stop 1 paused"));
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED));
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "nothing new";
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
  EXPECT_EQ(trial(1).reason, "sweep is paused");
  answer_of([&](auto answer) { coordinator->resume("s", answer); });
  settle();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 1u);
  EXPECT_EQ(assigned[0].attempt(), 2u);
}

TEST_F(CoordinatorTest, AWorkerThatWasAwayHearsOfThePauseThoughTheSchedulerBeganAnew) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  disconnect(worker);
  answer_of([&](auto answer) { coordinator->pause("s", true, answer); });
  stop();
  start();
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Contains("stop 1 paused"));
}

TEST_F(CoordinatorTest, AStoppingWorkerGetsNothingMore) {
  submit(sweep_of("s", 2, 1));
  FakeWorker stopping = connect({.name = "stopping"});
  say(stopping, started(1, 1));
  ablate::v1::WorkerMessage message;
  message.mutable_heartbeat()->add_runs(1);
  message.mutable_heartbeat()->set_draining(true);
  coordinator->receive(stopping.session, message);
  say(stopping, ended(1, 2, RunEnded::STATUS_STOPPED, "worker is stopping"));
  EXPECT_THAT(stopping.take_assigned(), SizeIs(1)) << "its own trial is queued, and not for it";
  EXPECT_EQ(trial(1).reason, "worker stopping is stopping");
  FakeWorker other = connect({.name = "other", .slots = 2});
  EXPECT_THAT(other.take_assigned(), SizeIs(2));
}

TEST_F(CoordinatorTest, AResumedSweepSaysAtOnceWhatItsTrialsWaitFor) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { coordinator->pause("s", false, answer); });
  settle();
  EXPECT_EQ(trial(2).reason, "sweep is paused");
  answer_of([&](auto answer) { coordinator->resume("s", answer); });
  settle();
  EXPECT_EQ(trial(2).reason, "the only slot is busy");
}

TEST_F(CoordinatorTest, ASweepSubmittedAgainTakesThePriorityThatIsGiven) {
  const auto priority = [&] {
    return read([](storage::Database& db) { return storage::SweepStore{db}.get("s").priority; });
  };
  submit(sweep_of("s", 1, 1), 3);
  answer_of([&](auto answer) { coordinator->submit(sweep_of("s", 1, 1), std::nullopt, answer); });
  EXPECT_EQ(priority(), 3);
  answer_of([&](auto answer) { coordinator->submit(sweep_of("s", 1, 1), 7, answer); });
  EXPECT_EQ(priority(), 7);
}

TEST_F(CoordinatorTest, AResumedAttemptGetsTheCheckpointsOfTheEarlierOnes) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  auto first = started(1, 1);
  auto& checkpoint = *first.add_checkpoints();
  checkpoint.set_step(40);
  checkpoint.set_path("/runs/1/1/40.ckpt");
  checkpoint.set_sha256("abc");
  say(worker, first);
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED));
  const auto again = worker.take_assigned().back();
  ASSERT_EQ(again.checkpoints_size(), 1);
  EXPECT_EQ(again.checkpoints(0).run(), 1u);
  EXPECT_EQ(again.checkpoints(0).step(), 40u);
  EXPECT_EQ(again.checkpoints(0).host(), "w-host");
}

TEST_F(CoordinatorTest, AFailedTrialIsRetriedOnRequest) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2, RunEnded::STATUS_FAILED, "out of memory"));
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_EQ(answer_of([&](auto answer) { coordinator->retry("s", "zz", answer); }).first, Code::kNotFound);
  EXPECT_EQ(answer_of([&](auto answer) { coordinator->retry("s", "a", answer); }).first, Code::kOk);
  settle();
  EXPECT_EQ(worker.take_assigned().back().attempt(), 2u);
}

TEST_F(CoordinatorTest, AFailureBacksOffAndIsRetriedByPolicy) {
  sweeps::SweepSpec spec = sweep_of("s", 1, 1);
  spec.max_retries = 1;
  submit(spec);
  FakeWorker worker = connect();
  say(worker, ended(1, 1, RunEnded::STATUS_FAILED, "killed by SIGSEGV (11)"));
  EXPECT_EQ(trial(1).reason, "retry in 1 s");
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
  pass(2s);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, AStoredTrialIsNotTrainedAgainByAnotherSweep) {
  submit(sweep_of("first", 2, 1));
  FakeWorker worker = connect({.slots = 4});
  say(worker, ended(1, 1));
  worker.take_assigned();
  const Submission second = submit(sweep_of("second", 3, 1));
  EXPECT_EQ(second.new_trials, 1u);
  EXPECT_EQ(second.shared_trials, 2u);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 3u);
}

TEST_F(CoordinatorTest, WhatWaitsSaysWhy) {
  submit(sweep_of("s", 2, 1));
  pass(1s);
  EXPECT_EQ(trial(1).reason, "no worker is connected");
  FakeWorker bare = connect({.name = "bare", .data = {}});
  EXPECT_EQ(trial(1).reason, "no worker maps the data set shapes (start one with --data shapes=FOLDER)");
  FakeWorker worker = connect();
  EXPECT_EQ(trial(2).reason, "the only slot is busy");
}

/// Lets the store grow no further, as a full disk would, and again.
void fill_disk(storage::Writer& writer, bool full) {
  writer.call([full](storage::Database& db) {
    db.execute(full ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 1000000");
  });
}

TEST_F(CoordinatorTest, AFullDiskAcknowledgesNothingAndTheSchedulerGoesOnAfterwards) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  worker.take_said();
  fill_disk(*writer, true);
  const auto [code, message] =
      answer_of([&](auto answer) { coordinator->submit(sweep_of("large", 26, 40), 0, answer); });
  EXPECT_EQ(code, Code::kResourceExhausted);
  EXPECT_THAT(message, HasSubstr("results.db"));
  auto large = measured(1, 2, 50);
  large.set_log(std::string(1 << 20, 'x'));
  say(worker, large);
  EXPECT_THAT(worker.take_said(), IsEmpty()) << "no acknowledgement of what is not stored";
  ASSERT_TRUE(worker.channel->closed());
  EXPECT_EQ(worker.channel->closed()->code(), Code::kResourceExhausted);
  disconnect(worker);

  fill_disk(*writer, false);
  FakeWorker back = connect({.runs = {1}});
  say(back, large);
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "ack 1 1", "ack 1 2"));
  EXPECT_TRUE(submit(sweep_of("large", 26, 40)).created);
}

TEST_F(CoordinatorTest, LeasesThatEndedWhileTheDiskWasFullAreGivenTime) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  fill_disk(*writer, true);
  answer_of([&](auto answer) { coordinator->submit(sweep_of("large", 26, 40), 0, answer); });
  pass(6s);
  fill_disk(*writer, false);
  pass(12s);
  EXPECT_EQ(run(1).state, RunState::kLeased);
}

}  // namespace
}  // namespace abl::scheduler
