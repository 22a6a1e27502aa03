// SPDX-License-Identifier: Apache-2.0
// What a sweep becomes when it is submitted, and what its trials say while they wait.
#include "config/document/trial_document.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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
  const auto [code, message] = answer_of(
      [&](auto answer) { submit_sweep(*coordinator, sweep_of("s", 3, 1), {.priority = 0}, answer); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, AllOf(HasSubstr("sweep s "), HasSubstr("\nrows.c: only here")));
}

TEST_F(CoordinatorTest, ASweepSubmittedAgainTakesThePriorityThatIsGiven) {
  const auto priority = [&] {
    return read([](storage::Database& db) { return storage::SweepStore{db}.get("s").priority; });
  };
  submit(sweep_of("s", 1, 1), 3);
  answer_of([&](auto answer) { submit_sweep(*coordinator, sweep_of("s", 1, 1), {}, answer); });
  EXPECT_EQ(priority(), 3);
  answer_of([&](auto answer) { submit_sweep(*coordinator, sweep_of("s", 1, 1), {.priority = 7}, answer); });
  EXPECT_EQ(priority(), 7);
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

TEST_F(CoordinatorTest, QueuedTrialsOfAnOlderResultVersionRunAsTheyWouldToday) {
  sweeps::SweepSpec spec = sweep_of("s", 1, 2);
  spec.rows[0].result_version = config::kFirstResultVersion - 1;
  submit(spec);
  stop();
  storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE store SET due_as_of = 5");
  start();  // of a release whose version for these documents is another
  EXPECT_TRUE(trial(1).before_mend());
  FakeWorker worker = connect();
  ASSERT_THAT(worker.take_assigned(), SizeIs(1));
  EXPECT_EQ(trial(1).identity.result_version, config::kFirstResultVersion);
  EXPECT_FALSE(trial(1).before_mend());
  EXPECT_FALSE(trial(2).before_mend());
}

/// As a release stored it whose recipe said 256 pixels of whatever size.
TEST_F(CoordinatorTest, AQueuedTrialOfACorrectedRecipeRunsTheDocumentThatTheFileGivesToday) {
  const std::string today = sweeps::parse_sweep(R"(ablate: 1
name: small
base:
  model: {preset: simple-vit-nano}
  data: {name: cifar10}
  recipe: {use: msf-imagenet, epochs: 1, precision: fp32}
rows: [{id: a}]
table: {columns: [{name: acc, metric: val/top1}]}
)",
                                                "small.yaml")
                                .rows[0]
                                .config;
  auto once = nlohmann::json::parse(today);
  ASSERT_EQ(once.at("recipe").at("eval_resize"), 36);
  once["recipe"]["eval_resize"] = 256;
  sweeps::SweepSpec spec = sweep_of("s", 1, 1);
  spec.rows[0].config = once.dump();
  spec.rows[0].result_version = config::kFirstResultVersion;
  submit(spec);
  stop();
  storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(
      "UPDATE store SET due_as_of = 6");
  start();
  EXPECT_TRUE(trial(1).before_mend());
  FakeWorker worker = connect();
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  auto trained = nlohmann::json::parse(assigned[0].config_json());
  trained.erase("seed");
  EXPECT_EQ(trained, nlohmann::json::parse(today));
  EXPECT_EQ(trial(1).identity.config_hash, config::config_hash(trial(1).config));
  EXPECT_FALSE(trial(1).before_mend());
}

TEST_F(CoordinatorTest, ACompletedTrialWithoutTheTablesMetricLeavesTheSweepIncompleteAndRunsAgainWhenAsked) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, ended(1, 1));
  worker.take_assigned();
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
  const auto unfilled = [&] {
    return read([](storage::Database& db) { return storage::SweepStore{db}.get("s").trials.unfilled; });
  };
  EXPECT_EQ(unfilled(), 1u);
  std::uint32_t retried = 0;
  answer_of([&](auto answer) {
    retry_sweep(*coordinator, "s", "", {.ended = false, .held = false, .unfilled = true},
                [&retried, answer](std::exception_ptr error, std::uint32_t count) {
                  retried = count;
                  answer(error);
                });
  });
  settle();
  EXPECT_EQ(retried, 1u);
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_EQ(assigned[0].trial(), 2u);
  say(worker, started(assigned[0].run(), 1));
  say(worker, measured(assigned[0].run(), 2, 80));
  say(worker, ended(assigned[0].run(), 3));
  EXPECT_EQ(unfilled(), 0u);
}

TEST_F(CoordinatorTest, RefusedLinesAreStoredOnceWithTheirBatch) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  ablate::v1::RunBatch batch = started(1, 1);
  batch.set_refused_lines(2);
  batch.set_refused_example("{acc: 1}: not JSON");
  say(worker, batch);
  say(worker, batch);  // a repetition
  EXPECT_EQ(run(1).refused_lines, 2u);
  EXPECT_EQ(run(1).refused_example, "{acc: 1}: not JSON");
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

TEST_F(CoordinatorTest, WhatWaitsSaysWhy) {
  submit(sweep_of("s", 2, 1));
  pass(1s);
  EXPECT_EQ(trial(1).reason, "no worker is connected");
  FakeWorker bare = connect({.name = "bare", .data = {}});
  EXPECT_EQ(trial(1).reason, "no worker has the data set shapes (start one with --data shapes=FOLDER)");
  FakeWorker worker = connect();
  EXPECT_EQ(trial(2).reason, "the only slot is busy");
}

TEST_F(CoordinatorTest, ATrialWaitsForAWorkerWithItsWeightsAndIsOfferedToNoOther) {
  submit(tuning_of("s", 1, "regnet"));
  FakeWorker bare = connect({.name = "bare"});
  EXPECT_EQ(trial(1).reason, "no worker has the weights regnet (start one with --weights regnet=FILE)");
  pass(60s);
  EXPECT_THAT(bare.take_assigned(), IsEmpty());
  EXPECT_EQ(trial(1).attempt, 0);
  FakeWorker worker = connect({.weights = {"deit", "regnet"}});
  const auto assigned = worker.take_assigned();
  ASSERT_THAT(assigned, SizeIs(1));
  EXPECT_THAT(assigned[0].weights(), ElementsAre("regnet"));
}

}  // namespace
}  // namespace abl::scheduler
