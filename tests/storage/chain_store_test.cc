// SPDX-License-Identifier: Apache-2.0
#include "storage/chain_store.h"

#include "storage/due_versions.h"
#include "storage/removal.h"
#include "storage/run_files.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ChainStoreTest : public StoreTest {
 protected:
  ChainStore chains{db};

  /// Rows a, b, c of one seed: each takes the weights of the one before it.
  static SweepText chain(const std::string& name, int rows = 3) {
    SweepText text = sweep_of(name, rows, 1);
    for (int row = 1; row < rows; ++row) {
      const auto& before = text.trials[static_cast<std::size_t>(row - 1)];
      text.trials[static_cast<std::size_t>(row)].sources = {
          {.name = protocol::weights_name(protocol::Taken::kBest, before.config_hash),
           .config_hash = before.config_hash,
           .data = before.data,
           .result_version = before.result_version}};
    }
    return text;
  }
  /// Of which a correction of the trainer concerns the first row's trial.
  static SweepText chain_to_correct() {
    SweepText text = chain("s");
    text.trials[0].config = R"({"corrected":true,"seed":0})";
    return text;
  }
  /// Completes the first two; then the trainer is corrected.
  void complete_two_and_correct() {
    add_checkpoint(run(1), 100, true);
    end(1, RunState::kCompleted);
    complete(2, 60);
    DueVersions{db}.update(
        3, [](const std::string& config) { return config.find("corrected") != std::string::npos ? 3 : 1; });
  }
  TrialState state(TrialId trial) const { return trials.get(trial).state; }
  std::string reason(TrialId trial) const { return trials.get(trial).reason; }
  bool awaits(TrialId trial) { return QueueStore{db}.open(trial).value().awaits; }
  void add_checkpoint(RunId run, std::uint32_t step, bool best, const std::string& sha256 = "s") {
    trials.add_checkpoint({.run = run,
                           .step = step,
                           .host = "alice-host",
                           .path = "/runs/" + std::to_string(run) + "/" + std::to_string(step),
                           .sha256 = sha256,
                           .best = best ? "/runs/" + std::to_string(run) + "/best" : ""});
  }
  TrialId trial_of_row(const std::string& sweep, int row) {
    return sweeps.claims(sweeps.get(sweep).id).at(static_cast<std::size_t>(row)).trial;
  }
};

TEST_F(ChainStoreTest, ATrialWaitsUntilThoseWhoseWeightsItTakesAreCompleted) {
  submit(chain("s"));
  EXPECT_FALSE(awaits(1));
  EXPECT_TRUE(awaits(2));
  EXPECT_TRUE(awaits(3));
  EXPECT_EQ(reason(2), "waits for row a, seed 0 (queued)");
  EXPECT_EQ(reason(3), "waits for row b, seed 0 (queued)");
  const RunId first = run(1);
  metrics.append(first, {{.name = "val/top1", .steps = {1}, .values = {1}, .times_ms = {1}}});
  EXPECT_THAT(reason(2), StartsWith("waits for row a, seed 0 (running, "));
  end(first, RunState::kCompleted);
  EXPECT_FALSE(awaits(2));
  EXPECT_TRUE(awaits(3));
  EXPECT_EQ(reason(2), "");
}

TEST_F(ChainStoreTest, SourcesThatComeLaterInTheFileAreFoundAllTheSame) {
  SweepText text = chain("s");
  std::ranges::reverse(text.trials);
  for (int row = 0; row < 3; ++row) text.trials[static_cast<std::size_t>(row)].row = row;
  submit(text);
  EXPECT_EQ(reason(1), "waits for row b, seed 0 (queued)");
  EXPECT_EQ(reason(2), "waits for row c, seed 0 (queued)");
  EXPECT_FALSE(awaits(3));
  EXPECT_THAT(chains.awaited(1), testing::UnorderedElementsAre(2u, 3u));
}

TEST_F(ChainStoreTest, ASourceThatFailsHoldsAllThatWaitsForItAndGivesItBack) {
  submit(chain("s"));
  EXPECT_EQ(
      trials.end(run(1), {.state = RunState::kFailed, .reason = "boom", .retryable = false}, {now, now}),
      TrialState::kFailed);
  EXPECT_EQ(state(2), TrialState::kHeld);
  EXPECT_EQ(state(3), TrialState::kHeld);
  EXPECT_EQ(reason(3), "held: row a, seed 0, whose weights it takes, failed: boom");
  const auto counts = sweeps.get("s").trials;
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.held, 2u);
  EXPECT_EQ(counts.open(), 0u) << "nobody waits for what cannot come";
  // of the last row alone: those that it needs go with it
  sweeps.retry(sweeps.get("s").id, "c", now, as_due);
  EXPECT_EQ(state(1), TrialState::kQueued);
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_EQ(state(3), TrialState::kQueued);
  EXPECT_TRUE(awaits(3));
}

TEST_F(ChainStoreTest, AHeldSourceThatRunsAfterAllGivesBackWhatWaitsForIt) {
  submit(chain("s"));
  db.execute("UPDATE trial SET state = 'held', reason = 'its workers died' WHERE id = 1");
  EXPECT_EQ(state(2), TrialState::kHeld);
  EXPECT_EQ(state(3), TrialState::kHeld);
  db.execute("UPDATE trial SET state = 'running', reason = '' WHERE id = 1");  // its worker was only away
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_EQ(state(3), TrialState::kQueued);
  EXPECT_TRUE(awaits(2));
  db.execute("UPDATE trial SET state = 'failed', reason = 'boom' WHERE id = 1");
  EXPECT_EQ(state(2), TrialState::kHeld);
  db.execute("UPDATE trial SET state = 'completed', reason = '' WHERE id = 1");  // as from an archive
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_FALSE(awaits(2));
}

TEST_F(ChainStoreTest, WhatIsReleasedWhileItsSourceHasFailedIsHeldAgain) {
  submit(chain("s", 2));
  trials.end(run(1), {.state = RunState::kFailed, .reason = "boom", .retryable = false}, {now, now});
  EXPECT_EQ(sweeps.retry(sweeps.get("s").id, "", now, as_due, {.ended = false, .held = true}), 0u)
      << "nothing is queued by that";
  EXPECT_EQ(state(1), TrialState::kFailed);
  EXPECT_EQ(state(2), TrialState::kHeld) << "it would wait for ever";
}

TEST_F(ChainStoreTest, ACancelledSweepThatIsRetriedByOneRowClaimsItsSourcesAgain) {
  submit(chain("s"));
  sweeps.withdraw(sweeps.get("s").id, now);
  for (const TrialId trial : {1u, 2u, 3u}) EXPECT_EQ(state(trial), TrialState::kCancelled);
  sweeps.retry(sweeps.get("s").id, "b", now, as_due);
  EXPECT_EQ(state(1), TrialState::kQueued);
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_EQ(state(3), TrialState::kCancelled);
  EXPECT_TRUE(sweeps.is_wanted(1));
}

TEST_F(ChainStoreTest, ASweepThatIsCancelledLeavesTheChainsOfOthersAsTheyAre) {
  submit(chain("s"));
  submit(chain("t"));
  sweeps.withdraw(sweeps.get("s").id, now);
  for (const TrialId trial : {1u, 2u, 3u}) EXPECT_EQ(state(trial), TrialState::kQueued);
  EXPECT_EQ(reason(2), "waits for row a, seed 0 of s (queued)");
}

TEST_F(ChainStoreTest, TheWeightsAreThoseOfTheBestEvaluationOrOfTheLastStepOfTheRunThatCompleted) {
  submit(chain("s", 2));
  const RunId first = lease(1).run;
  trials.start(first, {.total_steps = 100}, now);
  add_checkpoint(first, 10, true, "s10");
  add_checkpoint(first, 20, true, "s20");
  add_checkpoint(first, 30, true, "s30");
  end(first, RunState::kLost);
  const RunId second = lease(1, "bob").run;
  trials.start(second, {.total_steps = 100, .resumed_from_step = 20, .resumed_from_run = first}, now);
  add_checkpoint(second, 100, false, "s100");
  EXPECT_EQ(chains.files(2).at(0).checkpoint.run, 0u) << "it has not ended";
  end(second, RunState::kCompleted);
  const SourceFile best = chains.files(2).at(0);
  EXPECT_EQ(best.checkpoint.sha256, "s20") << "step 30 is not of this training";
  EXPECT_EQ(best.checkpoint.path, "/runs/1/best");
  EXPECT_EQ(best.what, "row a, seed 0");
  db.execute("UPDATE trial_source SET take = 'last'");
  EXPECT_EQ(chains.files(2).at(0).checkpoint.sha256, "s100");
  EXPECT_EQ(QueueStore{db}.open(2).value().home, "alice-host") << "where they lie";
}

TEST_F(ChainStoreTest, TheBestCheckpointOfARunIsKnownHoweverManyFollow) {
  submit(chain("s", 2));
  const RunId id = run(1);
  add_checkpoint(id, 1, true, "old");
  add_checkpoint(id, 2, true, "best");
  for (std::uint32_t step = 3; step < 300; ++step) add_checkpoint(id, step, false);
  EXPECT_EQ(trials.checkpoints_of(1).size(), TrialStore::kMostCheckpoints + 1);
  end(id, RunState::kCompleted);
  EXPECT_EQ(chains.files(2).at(0).checkpoint.sha256, "best");
}

TEST_F(ChainStoreTest, ASourceWithoutSuchACheckpointHoldsTheTrialUntilItHasRunAgain) {
  submit(chain("s", 2));
  complete(1, 50);
  EXPECT_TRUE(chains.hold_without_weights(2, chains.files(2)));
  EXPECT_THAT(reason(2),
              HasSubstr("row a, seed 0, whose weights it takes, completed and left no checkpoint"));
  sweeps.retry(sweeps.get("s").id, "a", now, as_due, {.ended = false, .held = false, .completed = true});
  const TrialId again = trial_of_row("s", 0);
  EXPECT_NE(again, 1u);
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_TRUE(awaits(2)) << "for the new one";
  add_checkpoint(run(again), 100, true, "new");
  end(trials.get(again).run.value(), RunState::kCompleted);
  EXPECT_EQ(chains.files(2).at(0).checkpoint.sha256, "new");
}

TEST_F(ChainStoreTest, WhatHasCompletedKeepsTheWeightsThatItWasGivenWhenItsSourceRunsAgain) {
  submit(chain("s", 2));
  add_checkpoint(run(1), 100, true, "old");
  end(1, RunState::kCompleted);
  const RunId second = lease(2).run;
  chains.note(second, chains.files(2));
  trials.start(second, {.total_steps = 100, .data_fingerprint = "f1"}, now);
  end(second, RunState::kCompleted);
  sweeps.retry(sweeps.get("s").id, "a", now, as_due, {.ended = false, .held = false, .completed = true});
  EXPECT_EQ(state(2), TrialState::kCompleted);
  ASSERT_EQ(chains.given(second).size(), 1u);
  EXPECT_EQ(chains.given(second)[0].sha256, "old");
}

TEST_F(ChainStoreTest, WhatWaitsForASourceThatWasToRunAgainTakesTheFirstOnesWhereThatIsCancelled) {
  submit(chain("s", 2));
  add_checkpoint(run(1), 100, true, "old");
  end(1, RunState::kCompleted);
  const SweepId sweep = sweeps.get("s").id;
  const RunId begun = run(2);
  add_checkpoint(begun, 10, false);
  end(begun, RunState::kStopped);
  sweeps.retry(sweep, "a", now, as_due, {.ended = false, .held = false, .completed = true});
  EXPECT_TRUE(awaits(2));
  EXPECT_THAT(trials.checkpoints_of(2), IsEmpty()) << "they began with other weights";
  sweeps.withdraw(sweep, now);
  sweeps.retry(sweep, "", now, as_due);
  EXPECT_EQ(trial_of_row("s", 0), 1u);
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_FALSE(awaits(2));
  EXPECT_EQ(chains.files(2).at(0).checkpoint.sha256, "old");
}

TEST_F(ChainStoreTest, ASweepOfChainsIsRemovedAndAnotherKeepsWhatItNeeds) {
  submit(chain("s"));
  submit(chain("t", 2));
  complete(1, 50);
  sweeps.withdraw(sweeps.get("s").id, now);
  Removal removal{db};
  removal.begin("s", now);
  while (removal.step(now, 1) != Removal::Step::kDone) {
  }
  EXPECT_EQ(state(2), TrialState::kQueued);
  EXPECT_FALSE(awaits(2));
  EXPECT_THAT(chains.files(2), testing::SizeIs(1));
  sweeps.withdraw(sweeps.get("t").id, now);
  removal.begin("t", now);
  while (removal.step(now, 1) != Removal::Step::kDone) {
  }
  const auto count = [&](const char* table) {
    return db.prepared((std::string{"SELECT COUNT(*) FROM "} + table).c_str())
        .one([](const Statement& row) { return row.integer(0); })
        .value();
  };
  EXPECT_EQ(count("trial_source"), 0);
  EXPECT_EQ(count("trial WHERE id > 1"), 0);
}

TEST_F(ChainStoreTest, ACorrectionOfASourceMarksWhatWasMadeOfItAndHoldsWhatIsQueued) {
  submit(chain_to_correct());
  complete_two_and_correct();
  EXPECT_TRUE(trials.get(1).before_mend());
  EXPECT_TRUE(trials.get(2).before_mend()) << "it started from such weights";
  EXPECT_TRUE(DueVersions{db}.renew_queued(as_due));
  EXPECT_EQ(state(3), TrialState::kHeld);
  EXPECT_THAT(reason(3), HasSubstr("is from before a correction of the trainer"));
}

TEST_F(ChainStoreTest, AfterACorrectionARetryTrainsTheSourceAndWhatTakesItsWeightsAnew) {
  SweepText text = chain_to_correct();
  for (int row : {1, 2}) {
    auto& trial = text.trials[static_cast<std::size_t>(row)];
    trial.config = fmt::format(R"({{"recipe":{{"start_weights":"{}"}},"seed":0}})", trial.sources[0].name);
  }
  submit(text);
  complete_two_and_correct();
  DueVersions{db}.renew_queued(as_due);
  ASSERT_EQ(state(3), TrialState::kHeld);
  // today's document of the source is another one
  const Renew today = [](const TrialRecord& trial) {
    return trial.config.find("corrected") == std::string::npos
               ? RenewedTrial{trial.config, trial.identity.config_hash, trial.due_version}
               : RenewedTrial{R"({"corrected":"yes","seed":0})", std::string(64, 'c'), 3};
  };
  const SweepId sweep = sweeps.get("s").id;
  EXPECT_EQ(sweeps.retry(sweep, "", now, today, {.ended = false, .held = false, .before_mend = true}), 3u);
  const TrialId a = trial_of_row("s", 0), b = trial_of_row("s", 1), c = trial_of_row("s", 2);
  EXPECT_NE(a, 1u);
  EXPECT_NE(b, 2u);
  EXPECT_EQ(c, 3u) << "it had not begun";
  EXPECT_EQ(trials.get(a).identity.result_version, 3);
  EXPECT_EQ(trials.get(b).identity.result_version, 3);
  EXPECT_EQ(trials.get(c).identity.result_version, 3);
  const std::string name = protocol::weights_name(protocol::Taken::kBest, std::string(64, 'c'));
  EXPECT_THAT(trials.get(b).config, HasSubstr('"' + name + '"'));
  ASSERT_EQ(chains.links(b).size(), 1u);
  EXPECT_EQ(chains.links(b)[0].source, a);
  EXPECT_EQ(chains.links(b)[0].name, name);
  EXPECT_EQ(chains.links(c)[0].source, b);
  EXPECT_EQ(state(a), TrialState::kQueued);
  EXPECT_TRUE(awaits(b));
  EXPECT_TRUE(awaits(c));
  EXPECT_EQ(state(2), TrialState::kCompleted) << "what was completed stays";
  const RunId again = run(a);
  add_checkpoint(again, 100, true);
  end(again, RunState::kCompleted);
  EXPECT_FALSE(awaits(b));
  EXPECT_EQ(chains.files(b)[0].checkpoint.run, again);
  EXPECT_FALSE(chains.hold_outdated(b));
  EXPECT_EQ(sweeps.retry(sweep, "", now, today, {.ended = false, .held = false, .before_mend = true}), 0u);
}

TEST_F(ChainStoreTest, FilesOfATrialThatAnOpenChainNeedsAreToldApart) {
  submit(chain("s", 2));
  complete(1, 50);
  std::vector<bool> needed;
  each_trial_with_files(db, [&](const TrialFiles& trial) { needed.push_back(trial.needed); });
  EXPECT_THAT(needed, ElementsAre(true));
  needed.clear();
  complete(2, 50);
  each_trial_with_files(db, [&](const TrialFiles& trial) { needed.push_back(trial.needed); });
  EXPECT_THAT(needed, ElementsAre(false, false));
}

TEST_F(ChainStoreTest, TheEndOfARunCostsNoMoreWhenManyChainsWait) {
  const auto cost = [&](const std::string& name, int pairs) {
    SweepText text = sweep_of(name, 2, pairs, name);
    for (std::size_t i = 0; i < text.trials.size(); i += 2)
      text.trials[i + 1].sources = {{.name = "best-of-" + text.trials[i].config_hash,
                                     .config_hash = text.trials[i].config_hash,
                                     .data = text.trials[i].data,
                                     .result_version = text.trials[i].result_version}};
    submit(text);
    const RunId id = run(trial_of_row(name, 0));
    const auto before = db.steps();
    end(id, RunState::kCompleted);
    return db.steps() - before;
  };
  cost("warm", 2);
  const auto few = cost("few", 2), many = cost("many", 500);
  EXPECT_LT(many, 2 * few);
}

}  // namespace
}  // namespace abl::storage
