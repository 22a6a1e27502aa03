// SPDX-License-Identifier: Apache-2.0
// A run over several workers, as their sessions see it.
#include "storage/part_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CoordinatorGangTest : public CoordinatorTest {
 protected:
  void submit_gang(int least = 2, int seeds = 1) {
    sweeps::SweepSpec spec = sweep_of("s", 1, seeds);
    spec.split = {.least_nodes = least, .most_nodes = 2};
    submit(spec);
  }
  FakeWorker joining(const std::string& name, std::map<std::uint32_t, std::string> parts = {},
                     std::vector<std::uint32_t> runs = {}, const std::string& instance = "first") {
    return connect({.name = name,
                    .instance = instance,
                    .runs = std::move(runs),
                    .address = "10.0.0.1",
                    .parts = std::move(parts)});
  }
  void meet(FakeWorker& leader, std::uint32_t run, std::uint64_t seq = 1) {
    ablate::v1::RunBatch batch = batch_of(run, seq);
    batch.set_rendezvous("10.0.0.1:4711");
    say(leader, batch);
  }
  /// Both live meanwhile; 100: it gets nothing so long.
  int seconds_until_assigned(FakeWorker& worker, FakeWorker& other) {
    for (int i = 0; i < 100; ++i) {
      worker.look();
      if (!worker.assigned.empty()) return i;
      heartbeat(worker, {}), heartbeat(other, {});
      pass(1s);
    }
    return 100;
  }
  void say_part_over(FakeWorker& worker, std::uint32_t run, const std::string& token, bool failed,
                     const std::string& reason = "") {
    ablate::v1::WorkerMessage message;
    auto& over = *message.mutable_part_ended();
    over.set_run(run);
    over.set_token(token);
    over.set_failed(failed);
    over.set_reason(reason);
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
};

TEST_F(CoordinatorGangTest, ThePartsAreToldOnceItIsKnownWhereTheRanksMeet) {
  FakeWorker one = joining("one");
  submit_gang();
  EXPECT_THAT(one.take_assigned(), IsEmpty());
  FakeWorker two = joining("two");
  const auto leader = one.take_assigned();
  ASSERT_THAT(leader, SizeIs(1));
  EXPECT_EQ(leader[0].gang().node(), 0u);
  EXPECT_EQ(leader[0].gang().nodes(), 2u);
  EXPECT_EQ(leader[0].gang().ranks(), 2u);
  EXPECT_THAT(two.take_assigned(), IsEmpty());
  meet(one, 1);
  const auto part = two.take_assigned();
  ASSERT_THAT(part, SizeIs(1));
  EXPECT_EQ(part[0].run(), 1u);
  EXPECT_EQ(part[0].token(), leader[0].token());
  EXPECT_EQ(part[0].gang().node(), 1u);
  EXPECT_EQ(part[0].gang().first_rank(), 1u);
  EXPECT_EQ(part[0].gang().rendezvous(), "10.0.0.1:4711");
  EXPECT_EQ(part[0].config_json(), leader[0].config_json());
  EXPECT_THAT(part[0].checkpoints(), IsEmpty()) << "the first machine reads them";
}

TEST_F(CoordinatorGangTest, WhatIsNoPlaceToMeetReachesNoOtherWorker) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  ASSERT_THAT(one.take_assigned(), SizeIs(1));
  ablate::v1::RunBatch batch = batch_of(1, 1);
  batch.set_rendezvous("--run-dir:80");
  say(one, batch);
  EXPECT_THAT(two.take_assigned(), IsEmpty());
}

TEST_F(CoordinatorGangTest, TheSlotsOfAPartAreItsOwnUntilItIsOver) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  two.take_assigned();
  sweeps::SweepSpec small = sweep_of("small", 2, 1);
  small.rows.erase(small.rows.begin());  // another trial
  submit(small);
  EXPECT_THAT(two.take_assigned(), IsEmpty()) << "it is busy with its part";
  say(one, started(1, 2));
  say(one, ended(1, 3));
  EXPECT_THAT(two.take_said(), testing::Contains("stop part of 1 the run has ended"));
  EXPECT_THAT(one.take_assigned(), SizeIs(1));
  EXPECT_THAT(two.take_assigned(), IsEmpty()) << "its program may still be there";
  submit(sweep_of("more", 3, 1));
  say_part_over(two, 1, token, false);
  EXPECT_THAT(two.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorGangTest, APartThatCannotStartEndsTheRunAsLost) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  one.take_said(), two.take_assigned();
  say_part_over(two, 1, "of another store", true, "no");
  EXPECT_THAT(one.take_said(), IsEmpty());
  disconnect(two);
  FakeWorker again = joining("two", {}, {}, "second");
  ASSERT_THAT(again.take_assigned(), SizeIs(1)) << "it is told anew, for it does not have it";
  say_part_over(again, 1, token, true, "its disk is full");
  EXPECT_THAT(one.take_said(),
              ElementsAre("stop 1 as lost worker two, which takes part in it: its disk is full"));
  say(one, ended(1, 2, ablate::v1::RunEnded::STATUS_LOST, "worker two: its disk is full"));
  EXPECT_EQ(trial(1).failures, 0);
  EXPECT_THAT(one.take_assigned(), IsEmpty()) << "not with that worker";
  EXPECT_EQ(trial(1).reason, "first tried without worker two, which takes part in it: its disk is full");
  EXPECT_EQ(seconds_until_assigned(one, again), 30) << "there is no other";
}

TEST_F(CoordinatorGangTest, ThePartThatFailsIsTriedElsewhereFirst) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  two.take_assigned();
  FakeWorker three = joining("three");
  say_part_over(two, 1, token, true, "it does not reach 10.0.0.1:4711");
  say(one, ended(1, 2, ablate::v1::RunEnded::STATUS_LOST, "worker two"));
  EXPECT_THAT(one.take_assigned(), SizeIs(1));
  meet(one, 2);
  EXPECT_THAT(two.take_assigned(), IsEmpty());
  EXPECT_THAT(three.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorGangTest, APartThatKeepsFailingHoldsTheTrialWithItsReason) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  std::uint32_t run = 0;
  for (int attempt = 1; attempt <= 5; ++attempt) {
    const auto assigned = one.take_assigned();
    ASSERT_THAT(assigned, SizeIs(1)) << attempt;
    run = assigned[0].run();
    meet(one, run);
    ASSERT_THAT(two.take_assigned(), SizeIs(1));
    say_part_over(two, run, assigned[0].token(), true, "no way to 10.0.0.1:4711");
    say(one, ended(run, 2, ablate::v1::RunEnded::STATUS_LOST,
                   "worker two, which takes part in it: no way to 10.0.0.1:4711"));
    if (attempt < 5) {
      EXPECT_LE(seconds_until_assigned(one, two), 30);
    }
  }
  EXPECT_EQ(seconds_until_assigned(one, two), 100) << "never";
  EXPECT_EQ(trial(1).state, storage::TrialState::kHeld);
  EXPECT_THAT(trial(1).reason, testing::HasSubstr("held: 5 attempts in a row over several workers"));
  EXPECT_THAT(trial(1).reason, testing::HasSubstr("worker two, which takes part in it: no way to"));
}

TEST_F(CoordinatorGangTest, APartOfAnotherRunOfThatNumberFreesNothing) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  ASSERT_THAT(two.take_assigned(), SizeIs(1));
  sweeps::SweepSpec small = sweep_of("small", 2, 1);
  small.rows.erase(small.rows.begin());  // another trial
  submit(small);
  say_part_over(two, 1, "of another store", true, "dropped");
  const auto again = two.take_assigned();
  ASSERT_THAT(again, SizeIs(1)) << "it has nothing of this one";
  EXPECT_EQ(again[0].run(), 1u);
  EXPECT_EQ(again[0].gang().node(), 1u);
  EXPECT_THAT(one.take_said(), testing::Not(testing::Contains(testing::HasSubstr("stop"))));
  say(one, started(1, 2));
  say(one, ended(1, 3));
  EXPECT_THAT(one.take_assigned(), SizeIs(1)) << "the small one";
  say_part_over(two, 1, token, false);
  EXPECT_THAT(two.take_assigned(), IsEmpty());
}

/// However a run over two workers is stopped, all slots are free once afterwards, and not before.
class CoordinatorGangStopTest : public CoordinatorGangTest {
 protected:
  void begin() {
    one = joining("one"), two = joining("two");
    submit_gang();
    token = one.take_assigned().at(0).token();
    meet(one, 1);
    ASSERT_THAT(two.take_assigned(), SizeIs(1));
    say(one, started(1, 2));
    one.take_said(), two.take_said();
  }
  std::size_t busy() {
    coordinator->tick();
    settle();
    return coordinator->figures().standing.lock()->busy;
  }
  /// The leader does as it was told, then the other one.
  void stops(ablate::v1::RunEnded::Status status = ablate::v1::RunEnded::STATUS_STOPPED,
             const std::string& reason = "") {
    EXPECT_EQ(busy(), 2u) << "it is asked to stop";
    say(one, ended(1, 3, status, reason));
    EXPECT_THAT(two.take_said(), ElementsAre("stop part of 1 the run has ended"));
    say_part_over(two, 1, token, false);
    say_part_over(two, 1, token, false);  // said again
  }
  FakeWorker one, two;
  std::string token;
};

TEST_F(CoordinatorGangStopTest, WhenItsSweepIsCancelled) {
  begin();
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  settle();
  EXPECT_THAT(one.take_said(), ElementsAre("stop 1 cancelled"));
  EXPECT_THAT(two.take_said(), IsEmpty());
  stops();
  EXPECT_EQ(busy(), 0u);
  EXPECT_EQ(trial(1).state, storage::TrialState::kCancelled);
  EXPECT_THAT(one.take_assigned(), IsEmpty());
}

TEST_F(CoordinatorGangStopTest, WhenItsSweepIsPausedAndResumed) {
  begin();
  answer_of([&](auto answer) { pause_sweep(*coordinator, "s", /*stop_running=*/true, answer); });
  settle();
  EXPECT_THAT(one.take_said(), ElementsAre("stop 1 paused"));
  stops();
  EXPECT_EQ(busy(), 0u);
  EXPECT_EQ(trial(1).state, storage::TrialState::kQueued);
  EXPECT_EQ(trial(1).failures, 0);
  EXPECT_THAT(one.take_assigned(), IsEmpty());
  answer_of([&](auto answer) { resume_sweep(*coordinator, "s", {}, answer); });
  settle();
  ASSERT_THAT(one.take_assigned(), SizeIs(1));
  EXPECT_EQ(busy(), 2u);
}

TEST_F(CoordinatorGangStopTest, WhenATrialOfAHigherPriorityTakesItsSlot) {
  begin();
  sweeps::SweepSpec urgent = sweep_of("urgent", 2, 1);
  urgent.rows.erase(urgent.rows.begin());
  answer_of(
      [&](auto answer) { submit_sweep(*coordinator, urgent, {.priority = 10, .preempts = true}, answer); });
  settle();
  EXPECT_THAT(one.take_said(), ElementsAre("stop 1 it gives way to priority 10"));
  stops();
  const auto next = one.take_assigned();
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].trial(), 2u);
  EXPECT_EQ(busy(), 1u);
  EXPECT_THAT(two.take_assigned(), IsEmpty()) << "one of two slots is not enough";
  say(one, started(next[0].run(), 1));
  say(one, ended(next[0].run(), 2));
  EXPECT_THAT(one.take_assigned(), SizeIs(1));
  EXPECT_EQ(trial(1).attempt, 2);
}

TEST_F(CoordinatorGangStopTest, WhenItFailsByItsTimeLimit) {
  begin();
  say(one, ended(1, 3, ablate::v1::RunEnded::STATUS_FAILED, "time limit of 60 s", /*retryable=*/false));
  EXPECT_THAT(two.take_said(), ElementsAre("stop part of 1 the run has ended"));
  EXPECT_EQ(busy(), 1u) << "the other one's program may still be there";
  say_part_over(two, 1, token, true, "killed");
  EXPECT_EQ(busy(), 0u);
  EXPECT_EQ(trial(1).state, storage::TrialState::kFailed);
  EXPECT_EQ(trial(1).reason, "time limit of 60 s");
  EXPECT_THAT(one.take_said(), testing::Not(testing::Contains(testing::HasSubstr("lost"))));
}

TEST_F(CoordinatorGangStopTest, WhenThePartEndsBeforeTheRunThatIsAskedToStop) {
  begin();
  answer_of([&](auto answer) { cancel_sweep(*coordinator, "s", answer); });
  settle();
  one.take_said();
  say_part_over(two, 1, token, false);
  EXPECT_EQ(busy(), 1u);
  EXPECT_THAT(one.take_said(), IsEmpty());
  say(one, ended(1, 3, ablate::v1::RunEnded::STATUS_STOPPED));
  EXPECT_THAT(two.take_said(), IsEmpty()) << "it has nothing to stop";
  EXPECT_EQ(busy(), 0u);
  EXPECT_EQ(trial(1).state, storage::TrialState::kCancelled);
}

TEST_F(CoordinatorGangTest, OneThatCanNeverBePlacedSaysSo) {
  FakeWorker one = joining("one"), two = connect({.name = "two"});
  submit_gang();
  pass(1s);
  EXPECT_EQ(
      trial(1).reason,
      "needs 2 slots, one on each of 2 workers; 1 of the connected workers can take part (start workers "
      "with --address)");
}

TEST_F(CoordinatorGangTest, ARestartedSchedulerTakesBothUpAgain) {
  std::string token;
  {
    FakeWorker one = joining("one"), two = joining("two");
    submit_gang();
    token = one.take_assigned().at(0).token();
    meet(one, 1);
    ASSERT_THAT(two.take_assigned(), SizeIs(1));
  }
  stop();
  start();
  FakeWorker two = joining("two", {{1, token}});
  EXPECT_THAT(two.take_said(), ElementsAre("welcome"));
  EXPECT_THAT(two.take_assigned(), IsEmpty()) << "it has it";
  submit(sweep_of("small", 2, 1));
  EXPECT_THAT(two.take_assigned(), IsEmpty()) << "its slot is taken";
  FakeWorker one = joining("one", {}, {1});
  say(one, started(1, 2));
  say(one, ended(1, 3));
  EXPECT_THAT(two.take_said(), testing::Contains("stop part of 1 the run has ended"));
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
}

TEST_F(CoordinatorGangTest, APartThatWasNotToldBeforeARestartIsToldAfterIt) {
  {
    FakeWorker one = joining("one"), two = joining("two");
    submit_gang();
    one.take_assigned();
    disconnect(two);
    meet(one, 1);
  }
  stop();
  start();
  FakeWorker two = joining("two");
  ASSERT_THAT(two.take_assigned(), SizeIs(1));
}

TEST_F(CoordinatorGangTest, APartOfARunThatIsOverIsFenced) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  disconnect(two);
  say(one, started(1, 2));
  say(one, ended(1, 3));
  FakeWorker again = joining("two", {{1, token}});
  EXPECT_THAT(again.take_said(), ElementsAre("welcome", "fenced part of 1"));
  FakeWorker other = joining("three", {{77, "of another store"}});
  EXPECT_THAT(other.take_said(), ElementsAre("welcome", "fenced part of 77"));
}

TEST_F(CoordinatorGangTest, ADrainedWorkerStopsTheRunOfWhichItHasAPart) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang(/*least=*/1);
  one.take_assigned();
  meet(one, 1);
  one.take_said();
  answer_of([&](auto answer) { coordinator->drain("two", "new driver", /*stop_running=*/true, answer); });
  settle();
  EXPECT_THAT(one.take_said(), ElementsAre("stop 1 its worker is drained"));
  say(one, ended(1, 2, ablate::v1::RunEnded::STATUS_STOPPED));
  const auto assigned = one.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1)) << "on what is left";
  EXPECT_FALSE(assigned[0].has_gang());
}

TEST_F(CoordinatorGangTest, TheLeadersDeathFreesTheOthers) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang(/*least=*/1);
  const auto token = one.take_assigned().at(0).token();
  meet(one, 1);
  two.take_assigned();
  disconnect(one);
  for (int i = 0; i < 60; ++i) {
    heartbeat(two, {});
    pass(1s);
  }
  EXPECT_THAT(two.take_said(), testing::Contains("stop part of 1 the run has ended"));
  say_part_over(two, 1, token, true, "the connection is lost");
  const auto assigned = two.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_FALSE(assigned[0].has_gang());
  EXPECT_EQ(assigned[0].attempt(), 2u);
}

TEST_F(CoordinatorGangTest, TheGpuTimeIsThatOfAllSlots) {
  FakeWorker one = joining("one"), two = joining("two");
  submit_gang();
  one.take_assigned();
  meet(one, 1);
  say(one, started(1, 2));
  ablate::v1::RunBatch end = ended(1, 3);
  end.mutable_ended()->set_took_ms(1000);
  say(one, end);
  EXPECT_EQ(read([](storage::Database& db) {
              return db.prepared("SELECT SUM(gpu_ms) FROM sweep_count")
                  .one([](const storage::Statement& row) { return row.integer(0); })
                  .value();
            }),
            2000);
}

}  // namespace
}  // namespace abl::scheduler
