// SPDX-License-Identifier: Apache-2.0
// Cancelling, pausing, resuming and retrying a sweep, and stopping a worker.
#include "storage/worker_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using storage::TrialState;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

TEST_F(CoordinatorTest, ASweepWithNothingButHeldTrialsCanBeCancelled) {
  submit(sweep_of("s", 1, 1));
  writer->call([](storage::Database& db) { db.execute("UPDATE trial SET state = 'held', reason = 'held'"); });
  EXPECT_EQ(
      answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "", {.held = false}, answer); }).first,
      Code::kOk);
  EXPECT_EQ(trial(1).state, TrialState::kHeld);
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  EXPECT_EQ(trial(1).state, TrialState::kCancelled);
}

TEST_F(CoordinatorTest, CancelStopsWhatRunsAndNothingFollows) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  EXPECT_EQ(answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); }).first, Code::kOk);
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
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Contains("stop 1 cancelled"));
}

TEST_F(CoordinatorTest, APausedSweepWaitsAndGoesOnWhenResumed) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", true, answer); });
  settle();
  EXPECT_THAT(worker.take_said(), Contains("stop 1 paused"));
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED));
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "nothing new";
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
  EXPECT_EQ(trial(1).reason, "sweep is paused");
  answer_of([&](auto answer) { resume_sweep(*coordinator, "s", {}, answer); });
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
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", true, answer); });
  stop();
  start();
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Contains("stop 1 paused"));
}

TEST_F(CoordinatorTest, AResumedSweepTakesBackAStopThatItsWorkerHasNotHeard) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  disconnect(worker);
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", true, answer); });
  answer_of([&](auto answer) { resume_sweep(*coordinator, "s", {}, answer); });
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Not(Contains(HasSubstr("stop"))));
}

TEST_F(CoordinatorTest, ARunThatWasSilentDuringThePauseIsStoppedWhenItComesBack) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  pass(20s);
  EXPECT_EQ(trial(1).state, TrialState::kQueued) << "its lease ran out";
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", true, answer); });
  FakeWorker back = connect({.runs = {1}});
  EXPECT_THAT(back.take_said(), Contains("stop 1 paused"));
  say(back, ended(1, 2, RunEnded::STATUS_STOPPED));
  EXPECT_EQ(trial(1).state, TrialState::kQueued);
}

TEST_F(CoordinatorTest, APauseStopsWhatNoOtherActiveSweepWants) {
  submit(sweep_of("paused", 2, 1));
  submit(sweep_of("other", 1, 1));  // claims trial 1 too
  FakeWorker worker = connect({.slots = 2});
  answer_of([&](auto answer) { pause_sweep(*coordinator, "paused", true, answer); });
  settle();
  const auto said = worker.take_said();
  EXPECT_THAT(said, Contains("stop 2 paused"));
  EXPECT_THAT(said, Not(Contains("stop 1 paused")));
}

TEST_F(CoordinatorTest, ARetryOfWhatACancelledSweepHasNotSaysWhatWouldRun) {
  submit(sweep_of("s", 1, 1));
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  const auto [code, message] =
      answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "", {.ended = false}, answer); });
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_EQ(
      message,
      "sweep s is cancelled and has no trials that are held; 'ablate retry s' requeues its cancelled trials");
}

TEST_F(CoordinatorTest, AResumedSweepSaysAtOnceWhatItsTrialsWaitFor) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", false, answer); });
  settle();
  EXPECT_EQ(trial(2).reason, "sweep is paused");
  answer_of([&](auto answer) { resume_sweep(*coordinator, "s", {}, answer); });
  settle();
  EXPECT_EQ(trial(2).reason, "the only slot is busy");
}

TEST_F(CoordinatorTest, AFailedTrialIsRetriedOnRequest) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2, RunEnded::STATUS_FAILED, "out of memory"));
  EXPECT_EQ(trial(1).state, TrialState::kFailed);
  EXPECT_EQ(answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "zz", {}, answer); }).first,
            Code::kNotFound);
  EXPECT_EQ(answer_of([&](auto answer) { retry_sweep(*coordinator, "s", "a", {}, answer); }).first,
            Code::kOk);
  settle();
  EXPECT_EQ(worker.take_assigned().back().attempt(), 2u);
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

TEST_F(CoordinatorTest, ADrainedWorkerFinishesAndGetsNothingMoreUntilItIsResumed) {
  submit(sweep_of("s", 3, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  EXPECT_EQ(answer_of([&](auto answer) { coordinator->drain("x", "", false, answer); }).first,
            Code::kNotFound);
  answer_of([&](auto answer) { coordinator->drain("w", "new driver", false, answer); });
  say(worker, ended(1, 2));
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "the one that it had";
  EXPECT_EQ(trial(2).reason, "worker w is drained: new driver ('ablate workers resume w' ends that)");
  answer_of([&](auto answer) { coordinator->drain("w", "", false, answer); });
  settle();
  EXPECT_EQ(read([](storage::Database& db) { return storage::WorkerStore{db}.drained("w"); }), "new driver")
      << "drained again without a word";
  stop();
  start();  // it stays so
  FakeWorker back = connect({.instance = "second"});
  EXPECT_THAT(back.take_assigned(), SizeIs(0));
  answer_of([&](auto answer) { coordinator->drain("w", std::nullopt, false, answer); });
  settle();
  EXPECT_THAT(back.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorTest, ADrainThatStopsWhatRunsSendsItsTrialsElsewhere) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  answer_of([&](auto answer) { coordinator->drain("w", "", true, answer); });
  settle();
  EXPECT_THAT(worker.take_said(), Contains("stop 1 its worker is drained"));
  say(worker, ended(1, 2, RunEnded::STATUS_STOPPED, "its worker is drained"));
  FakeWorker other = connect({.name = "other"});
  EXPECT_THAT(other.take_assigned(), SizeIs(1));
}

/// Runs of the rows that the worker has, all as short as the first was.
TEST_F(CoordinatorTest, AWorkerOfShortTrialsGetsAFewAheadAndHandsThemBackForAMoreUrgentOne) {
  submit(sweep_of("s", 9, 1));
  FakeWorker worker = connect();
  ablate::v1::RunBatch quick = ended(1, 1);
  quick.mutable_ended()->set_took_ms(30);
  EXPECT_THAT(worker.take_assigned(), SizeIs(1)) << "nobody knows yet how long they take";
  say(worker, quick);
  auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1 + policy.ahead));
  for (const auto& assign : assigned) EXPECT_THAT(assign.slots(), testing::ElementsAre(0));
  EXPECT_EQ(trial(3).state, TrialState::kLeased);
  worker.take_said();
  submit(sweep_of("urgent", 1, 1, "other"), 5);
  EXPECT_THAT(worker.take_said(), testing::IsEmpty()) << "it has not the data that this one needs";
  submit(sweep_of("more-urgent", 10, 1), 9);  // the row j is new
  EXPECT_THAT(worker.take_said(), testing::ElementsAre("stop 3 recalled", "stop 4 recalled",
                                                       "stop 5 recalled", "stop 6 recalled"));
}

TEST_F(CoordinatorTest, WhatWasLeasedAheadGoesBackWhenTheRunInFrontTakesLong) {
  submit(sweep_of("s", 9, 1));
  FakeWorker worker = connect();
  ablate::v1::RunBatch quick = ended(1, 1);
  quick.mutable_ended()->set_took_ms(30);
  say(worker, quick);
  worker.take_assigned();
  worker.take_said();
  clock.pass(2 * policy.quick + 1ms);
  coordinator->tick();
  settle();
  EXPECT_THAT(worker.take_said(), testing::ElementsAre("stop 3 recalled", "stop 4 recalled",
                                                       "stop 5 recalled", "stop 6 recalled"));
  coordinator->tick();
  settle();
  EXPECT_THAT(worker.take_said(), testing::IsEmpty()) << "each is asked once";
  say(worker, ended(3, 1, RunEnded::STATUS_STOPPED, "recalled"));
  EXPECT_EQ(trial(3).state, TrialState::kQueued);
}

/// A batch that ends a run, and says that its program ran for 3 ms.
ablate::v1::RunBatch ended_quickly(std::uint32_t run, std::uint64_t seq = 1) {
  ablate::v1::RunBatch batch = ended(run, seq);
  batch.mutable_ended()->set_took_ms(30);
  return batch;
}

/// One trial that no other sweep has, of another data set than theirs.
sweeps::SweepSpec of_other_data(const std::string& name) {
  sweeps::SweepSpec spec = sweep_of(name, 1, 1, "other");
  spec.rows[0].config = R"({"data":"other"})";
  return spec;
}

TEST_F(CoordinatorTest, LeasesAheadDoNotKeepASweepOutThatNeedsSomethingElse) {
  submit(sweep_of("quick", 26, 4));
  FakeWorker worker = connect({.data = {"shapes", "other"}});
  say(worker, ended_quickly(1));
  submit(of_other_data("patient"));
  for (std::uint32_t run = 2; run <= 6; ++run) say(worker, ended_quickly(run));
  const auto assigned = worker.take_assigned();
  ASSERT_GT(assigned.size(), 6u);
  EXPECT_EQ(assigned[6].data(), "other") << "the line becomes empty, and then it is its turn";
}

TEST_F(CoordinatorTest, WhatWasCalledBackForAMoreUrgentTrialIsNotLeasedAheadAgain) {
  submit(sweep_of("quick", 26, 4));
  FakeWorker worker = connect({.data = {"shapes", "other"}});
  say(worker, ended_quickly(1));
  worker.take_assigned();
  submit(of_other_data("urgent"), 5);
  EXPECT_THAT(worker.take_said(), Contains("stop 3 recalled"));
  for (std::uint32_t run = 3; run <= 6; ++run)
    say(worker, ended(run, 1, RunEnded::STATUS_STOPPED, "recalled"));
  EXPECT_THAT(worker.take_assigned(), SizeIs(0));
  say(worker, ended_quickly(2));
  EXPECT_EQ(worker.take_assigned().at(0).data(), "other");
}

TEST_F(CoordinatorTest, WhatWasLeasedAheadIsStillCalledBackAfterAReconnection) {
  submit(sweep_of("s", 9, 1));
  FakeWorker worker = connect();
  say(worker, ended_quickly(1));
  disconnect(worker);
  FakeWorker back = connect({.runs = {2, 3, 4, 5, 6}});  // of which 2 is in the slot
  EXPECT_THAT(back.take_assigned(), SizeIs(0)) << "so many wait already";
  back.take_said();
  clock.pass(2 * policy.quick + 1ms);
  coordinator->tick();
  settle();
  EXPECT_THAT(back.take_said(), testing::ElementsAre("stop 3 recalled", "stop 4 recalled", "stop 5 recalled",
                                                     "stop 6 recalled"));
}

TEST_F(CoordinatorTest, WhatWasLeasedBeforeADrainAndNotSentGoesElsewhere) {
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect();
  worker.take_assigned();
  std::promise<void> both_are_there;
  writer->post([&](storage::Database&) { both_are_there.get_future().get(); });
  ablate::v1::WorkerMessage message;
  *message.mutable_batch() = ended(1, 1);
  coordinator->receive(worker.session, message);
  answer_of([&](auto answer) {
    coordinator->drain("w", "", true, answer);
    both_are_there.set_value();
  });
  settle();
  EXPECT_THAT(worker.take_assigned(), SizeIs(0));
  EXPECT_EQ(trial(2).state, TrialState::kQueued);
}

TEST_F(CoordinatorTest, NoMoreRunsGiveWayThanASweepMayHaveUnderWay) {
  submit(sweep_of("patient", 3, 1));
  FakeWorker worker = connect({.slots = 3});
  worker.take_said();
  sweeps::SweepSpec urgent = sweep_of("urgent", 3, 1);
  for (sweeps::Row& row : urgent.rows) row.config = R"({"urgent":")" + row.id + R"("})";
  answer_of([&](auto answer) {
    submit_sweep(*coordinator, urgent, {.priority = 5, .max_running = 1, .preempts = true}, answer);
  });
  settle();
  EXPECT_THAT(worker.take_said(), SizeIs(1));
}

TEST_F(CoordinatorTest, RunsThatContinueAfterARestartGiveWayToo) {
  submit(sweep_of("patient", 1, 1), 2);
  FakeWorker worker = connect();
  stop();
  start();
  FakeWorker back = connect({.runs = {1}});
  back.take_said();
  sweeps::SweepSpec urgent = sweep_of("urgent", 1, 1);
  urgent.rows[0].config = R"({"row":"urgent"})";
  for (const int priority : {2, 5}) {
    urgent.name = "urgent-" + std::to_string(priority);
    urgent.seeds = {priority};
    answer_of([&](auto answer) {
      submit_sweep(*coordinator, urgent, {.priority = priority, .preempts = true}, answer);
    });
    settle();
    EXPECT_THAT(back.take_said(), SizeIs(priority > 2 ? 1 : 0)) << priority;
  }
}

TEST_F(CoordinatorTest, RunsOfLowerPriorityGiveWayToASweepThatPreempts) {
  submit(sweep_of("patient", 3, 1));
  FakeWorker worker = connect({.slots = 2});
  say(worker, started(1, 1));
  say(worker, started(2, 1));
  worker.take_said();
  sweeps::SweepSpec urgent = sweep_of("urgent", 1, 1);
  urgent.rows[0].config = R"({"row":"urgent"})";
  answer_of(
      [&](auto answer) { submit_sweep(*coordinator, urgent, {.priority = 5, .preempts = true}, answer); });
  settle();
  const auto said = worker.take_said();
  ASSERT_THAT(said, SizeIs(1)) << "as many as it needs";
  EXPECT_THAT(said[0], HasSubstr("it gives way to priority 5"));
  coordinator->tick();
  settle();
  EXPECT_THAT(worker.take_said(), testing::IsEmpty()) << "each is asked once";
  const std::uint32_t stopped = said[0].starts_with("stop 1") ? 1 : 2;
  say(worker, ended(stopped, 2, RunEnded::STATUS_STOPPED, "it gives way to priority 5"));
  EXPECT_EQ(worker.take_assigned().back().trial(), 4u);
  EXPECT_EQ(trial(stopped).state, TrialState::kQueued);
}

TEST_F(CoordinatorTest, AHigherPriorityAloneStopsNothing) {
  submit(sweep_of("patient", 1, 1));
  FakeWorker worker = connect();
  worker.take_said();
  sweeps::SweepSpec first = sweep_of("first", 1, 1);
  first.rows[0].config = R"({"row":"first"})";
  submit(first, 5);
  EXPECT_THAT(worker.take_said(), testing::IsEmpty());
}

TEST_F(CoordinatorTest, ATrialOfFourGpusGetsAWorkerClearedAndNoMoreThanThat) {
  sweeps::SweepSpec patient = sweep_of("patient", 8, 1);
  patient.gpus = 1;
  submit(patient);
  FakeWorker one = connect({.name = "one", .slots = 4, .device = "cuda"});
  FakeWorker two = connect({.name = "two", .slots = 4, .device = "cuda"});
  one.take_said(), two.take_said();
  sweeps::SweepSpec urgent = sweep_of("urgent", 1, 1);
  urgent.rows[0].config = R"({"row":"urgent"})";
  urgent.gpus = 4;
  answer_of(
      [&](auto answer) { submit_sweep(*coordinator, urgent, {.priority = 5, .preempts = true}, answer); });
  settle();
  const std::size_t of_one = one.take_said().size(), of_two = two.take_said().size();
  EXPECT_EQ(of_one + of_two, 4u);
  EXPECT_TRUE(of_one == 0 || of_two == 0) << "all of one worker";
}

TEST_F(CoordinatorTest, NothingIsLeasedBehindARunOfWhichNobodyKnowsThatItIsShort) {
  submit(sweep_of("long", 1, 1));
  FakeWorker worker = connect({.slots = 2});
  EXPECT_EQ(worker.take_assigned().at(0).slots(0), 0u);
  sweeps::SweepSpec quick = sweep_of("quick", 12, 1);
  for (auto& row : quick.rows) row.config = R"({"quick":")" + row.id + R"("})";
  submit(quick);
  ablate::v1::RunBatch first = ended(2, 1);
  first.mutable_ended()->set_took_ms(30);
  say(worker, first);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(2 + policy.ahead));
  for (const auto& assign : assigned) EXPECT_EQ(assign.slots(0), 1u);
}

}  // namespace
}  // namespace abl::scheduler
