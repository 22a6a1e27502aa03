// SPDX-License-Identifier: Apache-2.0
#include "scheduler/failure_policy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/worker_store.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using ablate::v1::RunEnded;
using storage::TrialState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

storage::FailureCounts of_level(std::uint32_t failures) {
  return {.of = {1, "model.groups", "8"}, .failures = failures, .sweep_completed = true};
}

TEST(Breaker, ALevelIsHeldWhenThreeOfItHaveFailedAndOthersHaveCompleted) {
  EXPECT_FALSE(is_to_hold(of_level(2), false));
  EXPECT_TRUE(is_to_hold(of_level(3), false));
  auto counts = of_level(3);
  counts.completed = true;
  EXPECT_FALSE(is_to_hold(counts, false)) << "one of it has completed";
  counts = of_level(3);
  counts.sweep_completed = false;
  EXPECT_FALSE(is_to_hold(counts, false)) << "the others are no better";
  counts = of_level(3);
  counts.held = true;
  EXPECT_FALSE(is_to_hold(counts, false)) << "it is already";
}

TEST(Breaker, WhatOneWorkerAloneSaysOfALevelIsNotBelievedAtOnceWhereAnotherCouldTry) {
  EXPECT_FALSE(is_to_hold(of_level(3), true));
  EXPECT_TRUE(is_to_hold(of_level(10), true)) << "in the end it is";
  auto counts = of_level(3);
  counts.several_workers = true;
  EXPECT_TRUE(is_to_hold(counts, true));
}

TEST(Breaker, AWholeSweepIsHeldAfterTenFailuresWithoutASuccess) {
  storage::FailureCounts counts{.of = {.sweep = 1}, .failures = 9};
  EXPECT_FALSE(is_to_hold(counts, false));
  counts.failures = 10;
  EXPECT_TRUE(is_to_hold(counts, false));
  EXPECT_TRUE(is_to_hold(counts, true));
  counts.completed = counts.sweep_completed = true;
  EXPECT_FALSE(is_to_hold(counts, false));
  EXPECT_TRUE(is_to_hold({.of = {.sweep = 1}, .failures = 4, .canary = true}, false))
      << "while it tries a few";
}

TEST(Breaker, WhereAllThatFailedShareALevelOnlyThatIsHeldThoughNothingHasCompletedYet) {
  storage::FailureCounts counts = of_level(9);
  counts.sweep_completed = false;
  counts.sweep_failures = 9;
  EXPECT_FALSE(is_to_hold(counts, false));
  counts.failures = counts.sweep_failures = 10;
  EXPECT_TRUE(is_to_hold(counts, false)) << "the others have not ended: they may take longer";
  counts.sweep_failures = 11;
  EXPECT_FALSE(is_to_hold(counts, false));
}

TEST(Breaker, SaysWhatFailsByTheLastPartOfItsKey) {
  EXPECT_EQ(level_text({1, "model.attention.groups", "8"}, "s"), "all cells with groups=8");
  EXPECT_EQ(level_text({1, "", "a"}, "s"), "all trials of row a");
  EXPECT_EQ(level_text({.sweep = 1}, "s"), "all trials of s");
}

const Quarantine::Sweeps kOneSweep{1};

/// Fails so many trials on a worker, and says who came into quarantine or out of it.
std::vector<std::string> fail(Quarantine& quarantine, const std::string& worker, int trials, int first,
                              bool probe = false, const Quarantine::Sweeps& sweeps = kOneSweep) {
  std::vector<std::string> changes;
  for (int i = 0; i < trials; ++i)
    for (const auto& change :
         quarantine.failed(worker, static_cast<storage::TrialId>(first + i), sweeps, "boom", probe))
      changes.push_back(fmt::format("{} {}", change.worker, change.why ? change.back_off.count() : 0));
  return changes;
}

TEST(QuarantineTest, AWorkerOnWhichOneTrialAfterTheOtherFailsThatDoWellElsewhereGetsNothing) {
  Quarantine quarantine{{}};
  quarantine.completed("good", kOneSweep);
  EXPECT_THAT(fail(quarantine, "bad", 4, 1), IsEmpty());
  EXPECT_THAT(fail(quarantine, "bad", 1, 4), IsEmpty()) << "the same trial again says nothing new";
  EXPECT_THAT(fail(quarantine, "bad", 1, 5), ElementsAre("bad 60000"));
  EXPECT_TRUE(quarantine.contains("bad"));
}

TEST(QuarantineTest, ATrialThatCompletesBeginsTheRowAnew) {
  Quarantine quarantine{{}};
  quarantine.completed("good", kOneSweep);
  fail(quarantine, "bad", 4, 1);
  quarantine.completed("bad", kOneSweep);
  EXPECT_THAT(fail(quarantine, "bad", 4, 11), IsEmpty());
}

TEST(QuarantineTest, WaitsEverLongerWhileItsOneTrialFailsAndEndsWhenOneCompletes) {
  Quarantine quarantine{{}};
  quarantine.completed("good", kOneSweep);
  fail(quarantine, "bad", 5, 1);
  EXPECT_THAT(fail(quarantine, "bad", 1, 6), IsEmpty()) << "a run from before";
  EXPECT_THAT(fail(quarantine, "bad", 1, 7, true), ElementsAre("bad 120000"));
  EXPECT_THAT(fail(quarantine, "bad", 6, 8, true), Contains("bad 3600000")) << "an hour at most";
  const auto change = quarantine.completed("bad", kOneSweep);
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->why);
  EXPECT_FALSE(quarantine.contains("bad"));
}

TEST(QuarantineTest, ABrokenScriptPutsNobodyIntoQuarantine) {
  Quarantine quarantine{{}};
  const std::vector<std::string> workers{"a", "b", "c", "d"};
  for (const auto& worker : workers) quarantine.began(worker, kOneSweep);
  for (int trial = 1; trial < 40; ++trial)
    EXPECT_THAT(fail(quarantine, workers[static_cast<std::size_t>(trial) % 4], 1, trial), IsEmpty()) << trial;
}

TEST(QuarantineTest, AWorkerThatIsAloneIsNotBlamed) {
  Quarantine quarantine{{}};
  EXPECT_THAT(fail(quarantine, "only", 50, 1), IsEmpty());
}

TEST(QuarantineTest, WhoIsInQuarantineComesOutWhenOthersFareNoBetter) {
  Quarantine quarantine{{}};
  quarantine.began("other", kOneSweep);
  EXPECT_THAT(fail(quarantine, "first", 5, 1), ElementsAre("first 60000"));
  EXPECT_THAT(fail(quarantine, "other", 1, 11), ElementsAre("first 0"));
}

TEST(QuarantineTest, ATrialThatFailsOnAnotherTooIsItsOwnFault) {
  Quarantine quarantine{{}};
  for (const auto* worker : {"a", "b", "c"}) quarantine.completed(worker, kOneSweep);
  fail(quarantine, "a", 3, 1);
  EXPECT_THAT(fail(quarantine, "bad", 7, 1), IsEmpty()) << "4 of them alone";
  EXPECT_THAT(fail(quarantine, "bad", 1, 8), ElementsAre("bad 60000"));
}

TEST(QuarantineTest, TwoBadHostsOfManyDoNotExcuseEachOther) {
  Quarantine quarantine{{}};
  for (int i = 0; i < 10; ++i) quarantine.completed(fmt::format("w{}", i), kOneSweep);
  fail(quarantine, "w0", 4, 100);
  fail(quarantine, "w1", 4, 200);
  EXPECT_THAT(fail(quarantine, "w0", 1, 300), ElementsAre("w0 60000"));
  EXPECT_THAT(fail(quarantine, "w1", 1, 301), ElementsAre("w1 60000"));
}

TEST(QuarantineTest, IsNoneWhereItIsTurnedOff) {
  Quarantine quarantine{{.after = 0}};
  quarantine.completed("good", kOneSweep);
  EXPECT_THAT(fail(quarantine, "bad", 50, 1), IsEmpty());
}

// --- by the coordinator, in the store ---

class FailurePolicyTest : public CoordinatorTest {
 protected:
  void end(FakeWorker& worker, std::uint32_t run, bool completed, const std::string& reason = "boom") {
    if (completed)
      say(worker, ended(run, 1));
    else
      say(worker, ended(run, 1, RunEnded::STATUS_FAILED, reason));
  }
  storage::SweepRecord sweep(const std::string& name = "s") {
    return read([&](storage::Database& db) { return storage::SweepStore{db}.get(name); });
  }
  std::optional<storage::WorkerRecord::Quarantine> quarantine(const std::string& name) {
    return read([&](storage::Database& db) { return storage::WorkerStore{db}.quarantine(name); });
  }
  void retry_held() {
    answer_of(
        [&](auto answer) { retry_sweep(*coordinator, "s", "", {.ended = false, .held = true}, answer); });
    settle();
  }
  /// Rows of one seed that set groups to these.
  static sweeps::SweepSpec grouped(const std::vector<std::string>& groups) {
    sweeps::SweepSpec spec = sweep_of("s", static_cast<int>(groups.size()), 1);
    for (std::size_t i = 0; i < groups.size(); ++i)
      spec.rows[i].set = {{"model.attention.groups", groups[i]}};
    return spec;
  }
};

TEST_F(FailurePolicyTest, TheRestOfALevelIsHeldWhenAllOfItFail) {
  submit(grouped({"1", "8", "8", "8", "8", "8", "1"}));
  FakeWorker worker = connect();
  end(worker, 1, true);
  for (std::uint32_t run = 2; run < 4; ++run) end(worker, run, false);
  EXPECT_EQ(sweep().trials.held, 0u);
  end(worker, 4, false, "another");
  EXPECT_EQ(sweep().trials.held, 2u);
  EXPECT_THAT(sweep().holds, ElementsAre("all cells with groups=8 fail: boom (2 of 3)"));
  EXPECT_EQ(trial(5).reason, "all cells with groups=8 fail: boom (2 of 3)");
  end(worker, 5, true);
  EXPECT_EQ(trial(7).state, TrialState::kCompleted) << "the other level goes on";
  retry_held();
  EXPECT_THAT(sweep().holds, IsEmpty());
  EXPECT_EQ(trial(5).state, TrialState::kLeased);
  end(worker, 6, false);
  EXPECT_EQ(trial(6).state, TrialState::kLeased) << "counted anew";
}

TEST_F(FailurePolicyTest, ALevelOfWhichATrialCompletesAfterAllIsLetGo) {
  submit(grouped({"1", "8", "8", "8", "8", "8"}));
  FakeWorker worker = connect({.slots = 2});
  end(worker, 1, true);  // 2 runs beside 3
  end(worker, 3, false);
  end(worker, 4, false);
  end(worker, 5, false);
  EXPECT_EQ(sweep().trials.held, 1u);
  EXPECT_EQ(trial(6).state, TrialState::kHeld);
  end(worker, 2, true);
  EXPECT_THAT(sweep().holds, IsEmpty());
  EXPECT_EQ(trial(6).state, TrialState::kLeased);
}

TEST_F(FailurePolicyTest, WhatComesBackToTheQueueIsHeldWithTheOthersOfItsLevel) {
  auto spec = grouped({"1", "8", "8", "8", "8"});
  submit(spec);
  FakeWorker worker = connect({.slots = 2});
  end(worker, 1, true);
  end(worker, 3, false);
  end(worker, 4, false);
  end(worker, 5, false);
  say(worker, ended(2, 1, RunEnded::STATUS_LOST, "its worker was started again"));
  EXPECT_EQ(trial(2).state, TrialState::kHeld);
}

TEST_F(FailurePolicyTest, WhatIsLostWithItsWorkerIsHeldWithTheOthersOfItsLevel) {
  submit(grouped({"1", "8", "8", "8", "8", "8"}));
  FakeWorker worker = connect({.slots = 3});
  end(worker, 1, true);  // 2 and 3 run beside 4
  for (std::uint32_t run = 4; run <= 6; ++run) end(worker, run, false);
  EXPECT_THAT(sweep().holds, SizeIs(1));
  disconnect(worker);
  worker = connect({.slots = 3, .runs = {3}});
  EXPECT_EQ(trial(2).state, TrialState::kHeld) << "it came back without it";
  disconnect(worker);
  pass(60s);
  EXPECT_EQ(run(3).state, storage::RunState::kLost);
  EXPECT_EQ(trial(3).state, TrialState::kHeld) << "its lease ran out";
  connect({.slots = 3, .runs = {3}});
  EXPECT_EQ(trial(3).state, TrialState::kLeased) << "it lives after all";
}

TEST_F(FailurePolicyTest, WhatWorkersRefuseForGoodIsHeldToTheLastTrial) {
  submit(sweep_of("s", 26, 100));  // more than are held at once
  FakeWorker worker = connect();
  for (std::uint32_t run = 1; run <= 4; ++run) refuse(worker, run, "no such program", true);
  for (int i = 0; i < 3; ++i) settle();
  EXPECT_EQ(sweep().trials.held, 2596u);
}

TEST_F(FailurePolicyTest, AHoldThatCouldNotBeStoredGoesOnAtTheNextTick) {
  submit(sweep_of("s", 26, 100));
  FakeWorker worker = connect();
  for (std::uint32_t run = 1; run <= 3; ++run) end(worker, run, false);
  writer->call([](storage::Database& db) {
    db.execute(R"sql(CREATE TRIGGER stuck BEFORE UPDATE OF state ON trial WHEN NEW.state = 'held'
                       AND EXISTS (SELECT 1 FROM sweep_trial WHERE trial_id = NEW.id AND row > 22)
                     BEGIN SELECT RAISE(ABORT, 'stuck'); END)sql");
  });
  end(worker, 4, false);
  pass(2s);
  EXPECT_EQ(sweep().trials.held, 2000u);
  writer->call([](storage::Database& db) { db.execute("DROP TRIGGER stuck"); });
  pass(2s);
  EXPECT_EQ(sweep().trials.queued, 0u);
  EXPECT_EQ(sweep().trials.held, 2595u) << "one was leased meanwhile";
}

TEST_F(FailurePolicyTest, NothingIsSaidToBeHeldOfALevelOfWhichNothingIsLeft) {
  submit(grouped({"1", "8", "8", "8", "1"}));
  FakeWorker worker = connect();
  end(worker, 1, true);
  for (std::uint32_t run = 2; run <= 4; ++run) end(worker, run, false);
  EXPECT_THAT(sweep().holds, IsEmpty());
  EXPECT_EQ(trial(5).state, TrialState::kLeased);
}

TEST_F(FailurePolicyTest, ALevelThatHasFailedAsAWholeDoesNotTakeSlowerOnesWithIt) {
  std::vector<std::string> groups(13, "8");
  groups[0] = groups[11] = groups[12] = "1";
  submit(grouped(groups));
  FakeWorker worker = connect({.slots = 2});
  for (std::uint32_t run = 2; run <= 11; ++run) end(worker, run, false);  // run 1 goes on
  EXPECT_THAT(sweep().holds, IsEmpty());
  EXPECT_EQ(trial(12).state, TrialState::kLeased);
  end(worker, 12, false);
  EXPECT_EQ(sweep().trials.held, 0u) << "it is the first of its level";
}

TEST_F(FailurePolicyTest, ASweepThatNeverSucceedsIsHeldAfterTenFailures) {
  submit(sweep_of("s", 15, 1));
  FakeWorker worker = connect();
  for (std::uint32_t run = 1; run <= 10; ++run) end(worker, run, false);
  EXPECT_EQ(sweep().trials.held, 5u);
  EXPECT_THAT(sweep().holds, ElementsAre("all trials of s fail: boom (10 of 10)"));
  stop();
  start();
  EXPECT_EQ(sweep().trials.held, 5u);
}

TEST_F(FailurePolicyTest, ALevelThatFailsFastDoesNotTakeSlowerOnesWithIt) {
  submit(grouped({"1", "8", "8", "8", "8", "8", "8", "8", "8", "8", "8", "8", "8", "1"}));
  FakeWorker worker = connect({.slots = 2});
  for (std::uint32_t run = 2; run <= 11; ++run) end(worker, run, false);  // run 1 goes on
  EXPECT_THAT(sweep().holds, ElementsAre("all cells with groups=8 fail: boom (10 of 10)"));
  EXPECT_EQ(sweep().trials.held, 2u);
  EXPECT_EQ(trial(14).state, TrialState::kLeased);
  say(worker, ended(1, 1, RunEnded::STATUS_LOST, "its worker was started again"));
  EXPECT_THAT(sweep().holds, SizeIs(1));
}

TEST_F(FailurePolicyTest, WhatFailsOfALevelThatIsHeldSaysNothingOfTheOthers) {
  std::vector<std::string> groups(26, "8");
  groups[0] = groups[25] = "1";
  submit(grouped(groups));
  FakeWorker worker = connect({.slots = 24});
  for (std::uint32_t run = 2; run <= 23; ++run) end(worker, run, false);
  EXPECT_THAT(sweep().holds, ElementsAre("all cells with groups=8 fail: boom (10 of 10)"));
  EXPECT_EQ(trial(26).state, TrialState::kLeased);
}

TEST_F(FailurePolicyTest, NothingIsHeldOfASweepWithoutABreaker) {
  const auto spec = sweep_of("s", 15, 1);
  answer_of([&](auto answer) {
    submit_sweep(*coordinator, spec, {.breaker = false},
                 [answer](std::exception_ptr error, const Submission&) { answer(error); });
  });
  settle();
  FakeWorker worker = connect();
  for (std::uint32_t run = 1; run <= 15; ++run) end(worker, run, false);
  EXPECT_EQ(sweep().trials.failed, 15u);
}

TEST_F(FailurePolicyTest, TrialsThatAnotherSweepWantsTooStayInTheQueue) {
  submit(grouped({"1", "8", "8", "8", "8"}));
  auto other = sweep_of("t", 5, 1);
  other.rows.erase(other.rows.begin(), other.rows.begin() + 4);  // row e
  submit(other, -1);                                             // so that it does not go first
  FakeWorker worker = connect();
  end(worker, 1, true);
  for (std::uint32_t run = 2; run <= 4; ++run) end(worker, run, false);
  EXPECT_THAT(sweep().holds, SizeIs(1));
  EXPECT_EQ(trial(5).state, TrialState::kLeased) << "t wants it";
}

TEST_F(FailurePolicyTest, AWorkerInQuarantineGetsOneTrialAtATimeUntilOneCompletes) {
  submit(sweep_of("s", 26, 1));
  FakeWorker good = connect({.name = "good"}), bad = connect({.name = "bad", .slots = 2});
  end(good, good.take_assigned().at(0).run(), true);
  for (int failed = 0; failed < 5;) {
    auto runs = bad.take_assigned();
    for (const auto& assign : runs) end(bad, assign.run(), false), ++failed;
  }
  ASSERT_TRUE(quarantine("bad"));
  EXPECT_THAT(quarantine("bad")->why, HasSubstr("trials failed on it one after the other"));
  for (const auto& assign : bad.take_assigned()) end(bad, assign.run(), false);  // from before
  bad.take_assigned();
  pass(59s);
  heartbeat(bad, {});
  EXPECT_THAT(bad.take_assigned(), IsEmpty());
  stop();
  start();  // a restart keeps it
  bad = connect({.name = "bad", .slots = 2});
  good = connect({.name = "good"});
  EXPECT_THAT(bad.take_assigned(), IsEmpty());
  pass(2s);
  auto probe = bad.take_assigned();
  ASSERT_THAT(probe, SizeIs(1)) << "of two slots";
  end(bad, probe[0].run(), false);
  EXPECT_EQ(quarantine("bad")->back_off, 120s);
  EXPECT_THAT(bad.take_assigned(), IsEmpty());
  for (int i = 0; i < 119; ++i) pass(1s), heartbeat(bad, {}), heartbeat(good, {});
  EXPECT_THAT(bad.take_assigned(), IsEmpty());
  pass(2s);
  probe = bad.take_assigned();
  ASSERT_THAT(probe, SizeIs(1));
  end(bad, probe[0].run(), true);
  EXPECT_FALSE(quarantine("bad"));
  EXPECT_THAT(bad.take_assigned(), SizeIs(2));
}

TEST_F(FailurePolicyTest, QuarantineEndsByHand) {
  submit(sweep_of("s", 26, 1));
  FakeWorker good = connect({.name = "good"}), bad = connect({.name = "bad"});
  end(good, good.take_assigned().at(0).run(), true);
  for (int failed = 0; failed < 5; ++failed) end(bad, bad.take_assigned().at(0).run(), false);
  EXPECT_THAT(bad.take_assigned(), IsEmpty());
  answer_of([&](auto answer) { coordinator->drain("bad", std::nullopt, false, answer); });
  settle();
  EXPECT_FALSE(quarantine("bad"));
  EXPECT_THAT(bad.take_assigned(), SizeIs(1));
}

TEST_F(FailurePolicyTest, AFewOfAThousandTrialsRunUntilOneGetsThrough) {
  submit(sweep_of("s", 26, 40));
  EXPECT_TRUE(sweep().canary);
  FakeWorker one = connect({.name = "one", .slots = 4});
  EXPECT_THAT(one.take_assigned(), SizeIs(1));
  FakeWorker two = connect({.name = "two", .slots = 4});
  const auto runs = two.take_assigned();
  ASSERT_THAT(runs, SizeIs(1)) << "one for each worker";
  const auto waiting = read([](storage::Database& db) {
    return db.prepared("SELECT reason FROM trial_waiting WHERE trial = 20")
        .one([](const storage::Statement& row) { return row.text(0); });
  });
  EXPECT_EQ(waiting, storage::kCanaryReason);
  say(two, started(runs[0].run(), 1));
  EXPECT_TRUE(sweep().canary);
  say(two, measured(runs[0].run(), 2, 0.5));
  EXPECT_FALSE(sweep().canary) << "it has reported a number";
  EXPECT_THAT(one.take_assigned(), SizeIs(3));
  EXPECT_THAT(two.take_assigned(), SizeIs(3));
}

TEST_F(FailurePolicyTest, WhenTheFirstFewAllFailTheOthersAreHeld) {
  submit(sweep_of("s", 26, 100));  // more than are held at once
  FakeWorker worker = connect({.slots = 8});
  for (std::uint32_t run = 1; run <= 4; ++run) end(worker, run, false);
  for (int i = 0; i < 3; ++i) settle();
  EXPECT_EQ(sweep().trials.held, 2596u);
  EXPECT_THAT(sweep().holds, ElementsAre("all trials of s fail: boom (4 of 4)"));
  worker.take_assigned();
  retry_held();
  EXPECT_TRUE(sweep().canary) << "it tries a few again";
  EXPECT_THAT(worker.take_assigned(), SizeIs(1));
}

TEST_F(FailurePolicyTest, AFirstTrialThatGoesOnForLongHasGotThroughThoughItSaysNothing) {
  submit(sweep_of("s", 26, 40));
  FakeWorker worker = connect({.slots = 4});
  say(worker, started(1, 1));
  for (int i = 0; i < 301; ++i) pass(1s), heartbeat(worker, {1});
  EXPECT_FALSE(sweep().canary);
}

}  // namespace
}  // namespace abl::scheduler
