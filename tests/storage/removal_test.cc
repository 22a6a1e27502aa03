// SPDX-License-Identifier: Apache-2.0
#include "storage/removal.h"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "storage/run_files.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Le;
using Step = Removal::Step;

class RemovalTest : public StoreTest {
 protected:
  Removal removal{db};

  int count(const std::string& table) {
    static std::map<std::string, std::string> sql;  // `prepared` keeps the address
    std::string& text = sql[table];
    if (text.empty()) text = "SELECT COUNT(*) FROM " + table;
    return static_cast<int>(
        db.prepared(text.c_str()).one([](const Statement& row) { return row.integer(0); }).value());
  }
  std::map<std::string, int> counts() {
    std::map<std::string, int> all;
    for (const char* table :
         {"sweep", "sweep_row", "sweep_column", "sweep_seed", "sweep_paper", "sweep_trial", "sweep_count",
          "sweep_level", "trial", "trial_weights", "run", "point", "metric_summary", "log_chunk",
          "checkpoint", "transition", "data_pin", "weights_pin"})
      all[table] = count(table);
    return all;
  }
  /// Completes every trial of a sweep with some points, a log and a checkpoint.
  void fill(const std::string& name, int points = 3) {
    for (const auto& claim : sweeps.claims(sweeps.get(name).id)) {
      if (claim.state != TrialState::kQueued) continue;
      const RunId id = run(claim.trial);
      Series series{.name = "val/top1"};
      for (int step = 0; step < points; ++step) {
        series.steps.push_back(static_cast<std::uint32_t>(step));
        series.values.push_back(step);
        series.times_ms.push_back(0);
      }
      metrics.append(id, {series});
      metrics.append_log(id, "a line\n");
      trials.add_checkpoint({.run = id, .step = 1, .host = "h", .path = "/p", .sha256 = "s"});
      end(id, RunState::kCompleted);
    }
  }
  int remove(const std::string& name, int rows = 4000) {
    removal.begin(name, now);
    return finish(rows);
  }
  int finish(int rows = 4000) {
    for (int steps = 1;; ++steps)
      if (const Step step = removal.step(now, rows); step != Step::kMore) {
        EXPECT_EQ(step, Step::kDone);
        return steps;
      }
  }
};

TEST_F(RemovalTest, OfASweepAloneNothingIsLeftButTheNumberOfTheNewestStep) {
  auto before = counts();
  submit(sweep_of("msf", 3, 2));
  fill("msf");
  EXPECT_GT(count("point"), 0);
  const auto newest = [this] {
    return db.prepared("SELECT MAX(id) FROM transition")
        .one([](const Statement& row) { return row.integer(0); })
        .value();
  };
  const auto last = newest();
  remove("msf");
  before["transition"] =
      1;  // whoever looks at steps after a number would miss those to which it is given again
  EXPECT_EQ(newest(), last);
  EXPECT_EQ(counts(), before);
  EXPECT_EQ(sweeps.find("msf"), std::nullopt);
  EXPECT_EQ(db.prepared("PRAGMA foreign_key_check").all([](const Statement&) { return 0; }).size(), 0u);
}

TEST_F(RemovalTest, TrialsThatAnotherSweepClaimsStayAsTheyAre) {
  submit(sweep_of("first", 3, 1));
  submit(sweep_of("second", 2, 1));
  fill("first");
  const auto kept = sweeps.get("second").trials;
  remove("first");
  EXPECT_EQ(count("trial"), 2);
  EXPECT_EQ(count("run"), 2);
  EXPECT_EQ(count("point"), 6);
  const auto claims = sweeps.claims(sweeps.get("second").id);
  ASSERT_EQ(claims.size(), 2u);
  for (const auto& claim : claims) {
    EXPECT_EQ(claim.state, TrialState::kCompleted);
    EXPECT_FALSE(claim.shared);
    EXPECT_EQ(claim.last.at("val/top1"), 2);
  }
  EXPECT_EQ(sweeps.get("second").trials.completed, kept.completed);
}

TEST_F(RemovalTest, OnlyASweepThatNothingIsWantedOfIsRemoved) {
  submit(sweep_of("msf", 2, 1));
  const auto [code, message] = error_of([&] { removal.begin("msf", now); });
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_THAT(message, HasSubstr("'ablate cancel msf' first"));
  EXPECT_EQ(error_of([&] { removal.begin("mfs", now); }).first, Code::kNotFound);
  sweeps.withdraw(sweeps.get("msf").id, now);
  remove("msf");
  EXPECT_EQ(count("trial"), 0);
}

TEST_F(RemovalTest, ARunThatIsStillStoppingIsWaitedFor) {
  const SweepId sweep = submit(sweep_of("msf", 1, 1)).sweep;
  const RunId id = run(1);
  sweeps.withdraw(sweep, now);
  removal.begin("msf", now);
  EXPECT_EQ(removal.step(now), Step::kWaits);
  EXPECT_EQ(removal.left(sweep)->stopping, 1u);
  EXPECT_EQ(trials.run(id).state, RunState::kRunning) << "nothing of it is gone";
  end(id, RunState::kStopped);
  finish();
  EXPECT_EQ(removal.left(sweep), std::nullopt);
  EXPECT_EQ(count("run"), 0);
}

TEST_F(RemovalTest, TheNameIsFreeAtOnceAndTheSameFileTrainsAnew) {
  submit(sweep_of("msf", 2, 1));
  fill("msf");
  removal.begin("msf", now);
  const Submitted again = submit(sweep_of("msf", 2, 1));
  EXPECT_EQ(again.shared_trials, 2u) << "what is still there is shared, and stays";
  finish();
  EXPECT_EQ(sweeps.get("msf").trials.completed, 2u);
  remove("msf");
  EXPECT_EQ(submit(sweep_of("msf", 2, 1)).new_trials, 2u);
}

TEST_F(RemovalTest, ASweepThatComesBetweenTwoStepsFindsNoHalfTrial) {
  submit(sweep_of("msf", 1, 1));
  fill("msf", 100);
  removal.begin("msf", now);
  removal.step(now, 10);
  EXPECT_EQ(count("point"), 90);
  const Submitted again = submit(sweep_of("msf", 1, 1));
  EXPECT_EQ(again.new_trials, 1u);
  finish();
  EXPECT_EQ(sweeps.get("msf").trials.queued, 1u);
  EXPECT_EQ(count("point"), 0);
}

TEST_F(RemovalTest, NothingOfASweepOnItsWayOutCanBeChanged) {
  const SweepId sweep = submit(sweep_of("msf", 1, 1)).sweep;
  fill("msf");
  EXPECT_EQ(error_of([&] { removal.refuse(sweep); }).first, Code::kOk);
  removal.begin("msf", now);
  EXPECT_EQ(error_of([&] { removal.refuse(sweep); }).first, Code::kFailedPrecondition);
}

TEST_F(RemovalTest, NoNumberIsGivenTwice) {
  submit(sweep_of("msf", 2, 1));
  fill("msf");
  remove("msf");
  const Submitted next = submit(sweep_of("other", 2, 1, "o"));
  EXPECT_EQ(next.sweep, 2u);
  const auto claims = sweeps.claims(next.sweep);
  EXPECT_EQ(claims[0].trial, 3u);
  EXPECT_EQ(claims[1].trial, 4u);
  EXPECT_EQ(lease(3).run, 3u);
  EXPECT_EQ(lease(4).run, 4u);
}

TEST_F(RemovalTest, ATrialThatWasReplacedGoesWithTheOneThatReplacedIt) {
  const SweepId sweep = submit(sweep_of("msf", 1, 1)).sweep;
  complete(1, 80, "other");
  sweeps.retry(sweep, "", now, as_due, {.ended = false, .held = false, .unfilled = true});
  complete(2, 80);
  remove("msf");
  EXPECT_EQ(count("trial"), 0);
  EXPECT_EQ(count("run"), 0);
}

TEST_F(RemovalTest, OneThatWasToReplaceATrialAndWasCancelledGoesToo) {
  const SweepId sweep = submit(sweep_of("msf", 1, 1)).sweep;
  complete(1, 80, "other");
  sweeps.retry(sweep, "", now, as_due, {.ended = false, .held = false, .unfilled = true});
  const RunId run = lease(2).run;
  EXPECT_THAT(sweeps.withdraw(sweep, now), testing::ElementsAre(run));
  end(run, RunState::kStopped);
  EXPECT_EQ(count("run"), 2);
  remove("msf");
  EXPECT_EQ(count("trial"), 0);
  EXPECT_EQ(count("run"), 0);
}

TEST_F(RemovalTest, ATrialThatWasReplacedForOneSweepIsSharedAgainWhenThatIsGone) {
  const SweepId sweep = submit(sweep_of("msf", 1, 1)).sweep;
  submit(sweep_of("other", 1, 1));
  complete(1, 80, "acc");
  sweeps.retry(sweep, "", now, as_due, {.ended = false, .held = false, .unfilled = true});
  complete(2, 80);
  remove("msf");
  EXPECT_EQ(count("trial"), 1);
  EXPECT_EQ(submit(sweep_of("third", 1, 1)).shared_trials, 1u);
}

TEST_F(RemovalTest, WhatANameOfDataStandsForStaysForOthers) {
  submit(sweep_of("first", 1, 1));
  submit(sweep_of("second", 1, 1, "o"));
  fill("first");
  fill("second");
  remove("first");
  EXPECT_EQ(trials.fingerprint("cifar10"), "f1");
  EXPECT_EQ(count("point"), 3);
  remove("second");
  EXPECT_EQ(trials.fingerprint("cifar10"), std::nullopt) << "nobody has trained on it any more";
  EXPECT_EQ(count("run"), 0);
  EXPECT_EQ(count("trial"), 0);
}

/// As after a correction of the trainer: another trial took its place, and it was the first with its data.
TEST_F(RemovalTest, ARunThatSaidWhatDataStandForGoesWithThemAlsoWhereNobodyClaimsItsTrial) {
  submit(sweep_of("s", 2, 1));
  fill("s", 50);
  db.execute(
      "DELETE FROM sweep_trial WHERE trial_id = (SELECT trial_id FROM run JOIN data_pin ON run_id = run.id)");
  remove("s", 10);
  EXPECT_EQ(trials.fingerprint("cifar10"), std::nullopt);
  for (const char* table : {"sweep", "trial", "run", "point", "log_chunk", "metric_summary"})
    EXPECT_EQ(count(table), 0) << table;
}

TEST_F(RemovalTest, AStepCostsTheSameWhateverTheSweepHas) {
  for (const int points : {200, 20'000}) {
    const std::string name = fmt::format("s{}", points);
    submit(sweep_of(name, 4, 2, name));
    fill(name, points);
    const auto before = db.steps();
    const int steps = remove(name, 500);
    EXPECT_LT((db.steps() - before) / steps, 30'000) << points;
  }
}

TEST_F(RemovalTest, OfEachTrialItIsKnownWhatItsRunsHaveLeftOnDisks) {
  submit(sweep_of("msf", 3, 1));
  const RunId first = run(1);
  trials.add_checkpoint({.run = first, .step = 10, .host = "h", .path = "/r/1/1/a", .sha256 = "s"});
  trials.add_checkpoint({.run = first, .step = 20, .host = "h", .path = "/r/1/1/b", .sha256 = "s"});
  end(first, RunState::kLost);
  now += std::chrono::hours{1};
  complete(1, 80);
  complete(2, 80, "other");
  sweeps.retry(1, "b", now, as_due, {.ended = false, .held = false, .completed = true});
  std::vector<TrialFiles> all;
  each_trial_with_files(db, [&](TrialFiles trial) { all.push_back(std::move(trial)); });
  ASSERT_EQ(all.size(), 2u) << "those that never ran have none";
  ASSERT_EQ(all[0].runs.size(), 2u);
  EXPECT_EQ(all[0].state, TrialState::kCompleted);
  EXPECT_THAT(all[0].runs[0].checkpoints,
              testing::ElementsAre(testing::Pair(10, "/r/1/1/a"), testing::Pair(20, "/r/1/1/b")));
  EXPECT_TRUE(all[1].shown) << "its sweep has it back where the new one does not complete";
  complete(4, 80);
  all.clear();
  each_trial_with_files(db, [&](TrialFiles trial) { all.push_back(std::move(trial)); });
  EXPECT_FALSE(all[1].shown);
  EXPECT_TRUE(all[2].shown);
}

TEST_F(RemovalTest, StepsOfASweepWithManyTrialsDoNotLookAtAllOfThem) {
  std::vector<std::int64_t> costs;
  for (const int rows : {10, 1000}) {
    SweepText text = sweep_of(fmt::format("s{}", rows), 1, 1, fmt::format("h{}", rows));
    text.trials.clear();
    text.sweep.rows.clear();
    for (int i = 0; i < rows; ++i) {
      text.sweep.rows.push_back(
          {.id = fmt::format("r{}", i), .label = "", .set_json = "{}", .config_hash = "", .model = ""});
      text.trials.push_back({.row = i,
                             .config = "{}",
                             .config_hash = fmt::format("{}-{}", text.sweep.name, i),
                             .result_version = 1,
                             .data = ""});
    }
    const SweepId sweep = submit(text).sweep;
    sweeps.withdraw(sweep, now);
    removal.begin(text.sweep.name, now);
    removal.step(now, 20);
    const auto before = db.steps();
    removal.step(now, 20);
    costs.push_back(db.steps() - before);
    finish(20);
  }
  EXPECT_LT(costs[1], costs[0] * 3 + 1000);
}

}  // namespace
}  // namespace abl::storage
