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
  EXPECT_EQ(trial(1).state, storage::TrialState::kLeased) << "at once again, on both";
  EXPECT_EQ(trial(1).failures, 0);
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
