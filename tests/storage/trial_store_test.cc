// SPDX-License-Identifier: Apache-2.0
#include "storage/trial_store.h"

#include "storage/worker_store.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TrialStoreTest : public StoreTest {};

TEST_F(TrialStoreTest, FirstSeedOfEveryRowRunsBeforeTheSecondAndOlderSweepsBeforeYounger) {
  submit(sweep_of("old", 2, 2));             // trials 1 2 (seed 0), 3 4 (seed 1)
  submit(sweep_of("young", 1, 2, "other"));  // trials 5 (seed 0), 6 (seed 1)
  EXPECT_THAT(queue(), ElementsAre(1, 2, 5, 3, 4, 6));
}

TEST_F(TrialStoreTest, OfABudgetARunTakesWhatItWasExecutedAndItsPartOfASharedGpu) {
  submit(sweep_of("s", 2, 1));
  const Time later = now + std::chrono::seconds{100};  // since it was leased
  trials.end(run(1), {.state = RunState::kCompleted, .took = Milliseconds{2000}}, {later, later});
  EXPECT_EQ(sweeps.get("s").gpu_time, Milliseconds{2000});
  trials.end(run(2), {.state = RunState::kCompleted, .beside = 3, .took = Milliseconds{2000}},
             {later, later});
  EXPECT_EQ(sweeps.get("s").gpu_time, Milliseconds{2500});
}

TEST_F(TrialStoreTest, HigherPriorityRunsFirstAndATrialHasTheHighestOfItsClaims) {
  submit(sweep_of("patient", 3, 1));
  auto urgent = sweep_of("urgent", 2, 1);
  urgent.sweep.rows[0].id = "x";
  urgent.trials[0].config_hash = "new";  // row 0 is new, row 1 is trial 2 of the patient sweep
  urgent.sweep.priority = 5;
  EXPECT_EQ(submit(urgent).shared_trials, 1u);
  EXPECT_THAT(queue(), ElementsAre(4, 2, 1, 3));  // in each sweep by its rows
}

TEST_F(TrialStoreTest, PausedSweepQueuesNothingUnlessAnotherClaimsTheTrial) {
  submit(sweep_of("paused", 2, 1));
  sweeps.set_state(1, SweepState::kPaused, now);
  EXPECT_THAT(queue(), IsEmpty());
  EXPECT_EQ(trials.get(1).reason, "sweep is paused");
  submit(sweep_of("active", 1, 1));
  EXPECT_THAT(queue(), ElementsAre(1));
  EXPECT_EQ(trials.get(1).reason, "");
  EXPECT_EQ(trials.get(2).reason, "sweep is paused");
}

TEST_F(TrialStoreTest, LeasedTrialIsNotHandedOutTwice) {
  submit(sweep_of("s", 1, 1));
  const Lease first = lease(1);
  EXPECT_EQ(first.attempt, 1);
  EXPECT_FALSE(trials.lease(1, "bob", "host", now, now + 30s));
  EXPECT_EQ(trials.get(1).state, TrialState::kLeased);
  EXPECT_THAT(trials.under_way_on("alice"), ElementsAre(first.run));
  EXPECT_THAT(trials.under_way_on("bob"), IsEmpty());
}

TEST_F(TrialStoreTest, LostLeaseReturnsToTheQueueAndTheStaleRunIsRefused) {
  submit(sweep_of("s", 1, 1));
  const Lease first = lease(1);
  EXPECT_THAT(trials.expired(now + 29s), IsEmpty());
  EXPECT_TRUE(trials.renew(first.run, now + 60s));
  EXPECT_THAT(trials.expired(now + 59s), IsEmpty());
  EXPECT_THAT(trials.expired(now + 60s), ElementsAre(first.run));
  now += 60s;
  EXPECT_EQ(end(first.run, RunState::kLost, "no heartbeat"), TrialState::kQueued);
  EXPECT_THAT(queue(), ElementsAre(1)) << "a lost worker is not the trial's failure: no back-off";

  const Lease second = lease(1, "bob");
  EXPECT_EQ(second.attempt, 2);
  EXPECT_FALSE(trials.under_way(first.run));
  EXPECT_TRUE(trials.under_way(second.run));
  EXPECT_FALSE(trials.renew(first.run, now + 60s));
  EXPECT_EQ(error_of([&] { trials.start(first.run, {}, now); }).first, Code::kFailedPrecondition);
  EXPECT_EQ(error_of([&] { end(first.run, RunState::kCompleted); }).first, Code::kFailedPrecondition);
  EXPECT_EQ(trials.get(1).state, TrialState::kLeased) << "what a stale attempt says changes nothing";
}

TEST_F(TrialStoreTest, LeasesThatRanOutAreLookedForAmongTheRunsUnderWayAlone) {
  submit(sweep_of("s", 3, 1));
  const RunId third = lease(3).run, first = lease(1).run;
  EXPECT_THAT(trials.expired(now + 30s), ElementsAre(third, first));
  std::string plan;
  db.prepared(R"sql(EXPLAIN QUERY PLAN SELECT id FROM run INDEXED BY run_under_way
                    WHERE state IN ('leased', 'running') AND lease_expires_ms <= 0)sql")
      .all([&](const Statement& row) { return plan += row.text(3), 0; });
  EXPECT_THAT(plan, HasSubstr("INDEX run_under_way"));
  db.execute("DROP INDEX run_under_way");
  EXPECT_THROW(trials.expired(now), Error) << "it would look at every run there ever was";
}

TEST_F(TrialStoreTest, EveryRunHasATokenOfItsOwn) {
  submit(sweep_of("s", 2, 1));
  const Lease first = lease(1), second = lease(2);
  EXPECT_EQ(first.token.size(), 16u);
  EXPECT_NE(first.token, second.token);
  EXPECT_EQ(trials.run(first.run).token, first.token);
}

TEST_F(TrialStoreTest, LossesNeverFailATrialButItWaitsLongerEachTime) {
  submit(sweep_of("s", 2, 1));
  Milliseconds expected = 0s;
  for (int loss = 1; loss <= 30; ++loss) {
    const RunId neighbour = lease(2).run, lost = run(1);  // not alone: its worker is no witness
    trials.note_death({lost, neighbour});
    EXPECT_EQ(end(lost, RunState::kLost, "lease ran out"), TrialState::kQueued);
    end(neighbour, RunState::kStopped);
    const TrialRecord trial = trials.get(1);
    EXPECT_EQ(trial.losses, loss);
    EXPECT_EQ(trial.failures, 0) << "retry: {max} counts the trial's own failures alone";
    if (loss > 1) {
      EXPECT_EQ(trial.not_before - now, expected);
    }
    expected = loss == 1 ? 1s : std::min<Milliseconds>(2 * expected, TrialStore::kLongestBackOff);
    now = std::max(now, trial.not_before);
  }
}

TEST_F(TrialStoreTest, TrialThatWasAloneOnEveryWorkerThatDiedIsHeldUntilItIsQueuedAgain) {
  const SweepId sweep = submit(sweep_of("s", 1, 1)).sweep;
  const auto die = [&] {
    const RunId id = run(1);
    trials.note_death({id});
    return end(id, RunState::kLost, "lease expired: no heartbeat from worker alice");
  };
  for (int attempt = 1; attempt < TrialStore::kDeathsInARow; ++attempt) {
    EXPECT_EQ(die(), TrialState::kQueued);
    now += TrialStore::kLongestBackOff;
  }
  EXPECT_EQ(die(), TrialState::kHeld);
  EXPECT_THAT(queue(), IsEmpty());
  EXPECT_THAT(trials.get(1).reason,
              AllOf(HasSubstr("5 attempts in a row"), HasSubstr("running only this trial"),
                    HasSubstr("'ablate retry <sweep> --held'"),
                    HasSubstr("Last: lease expired: no heartbeat from worker alice")));
  const TrialCounts counts = sweeps.get("s").trials;
  EXPECT_EQ(counts.held, 1u);
  EXPECT_EQ(counts.failed, 0u);
  EXPECT_EQ(counts.total(), 1u);
  EXPECT_TRUE(sweeps.get("s").finished) << "nothing waits or runs: who watches it is told";

  EXPECT_EQ(sweeps.retry(sweep, "", now, as_due, {.ended = false}), 1u);
  EXPECT_THAT(queue(), ElementsAre(1));
  EXPECT_EQ(die(), TrialState::kQueued) << "it has all its chances again";
}

TEST_F(TrialStoreTest, DeathOfAWorkerWithSeveralRunsBlamesNone) {
  submit(sweep_of("s", 2, 1));
  const RunId first = run(1), second = run(2);
  WorkerStore{db}.upsert({.name = "alice", .last_heartbeat = now});
  now += 15s;
  trials.note_death({first});
  end(first, RunState::kLost);
  now += 1s;  // its lease was a little younger
  trials.note_death({second});
  end(second, RunState::kLost);
  EXPECT_EQ(trials.get(1).deaths, 0);
  EXPECT_EQ(trials.get(2).deaths, 0);
}

TEST_F(TrialStoreTest, RunThatItsSilentWorkerStillHasGoesOnWhileNobodyElseHasItsTrial) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  trials.note_death({id});
  trials.end(id, {.state = RunState::kLost, .reason = "its lease ran out", .silent = true}, now);
  EXPECT_TRUE(trials.adopt(id, now + 30s));
  EXPECT_EQ(trials.run(id).state, RunState::kRunning);
  EXPECT_FALSE(trials.run(id).ended);
  EXPECT_EQ(trials.get(1).state, TrialState::kRunning);
  EXPECT_EQ(trials.get(1).losses, 0) << "it was not lost";
  EXPECT_EQ(trials.get(1).deaths, 0);
  EXPECT_EQ(end(id, RunState::kCompleted), TrialState::kCompleted);
}

TEST_F(TrialStoreTest, RunIsNotTakenUpAgainWhenAnotherAttemptHasItsTrialOrNobodyWantsIt) {
  const SweepId sweep = submit(sweep_of("s", 3, 1)).sweep;
  const RunId taken = run(1), told = run(2), unwanted = run(3);
  const TrialStore::Ended silent{.state = RunState::kLost, .reason = "its lease ran out", .silent = true};
  trials.end(taken, silent, now);
  const RunId other = lease(1, "bob").run;
  EXPECT_FALSE(trials.adopt(taken, now + 30s));
  EXPECT_EQ(trials.get(1).run, other);
  EXPECT_EQ(trials.run(taken).state, RunState::kLost);
  end(told, RunState::kLost, "its worker said so");
  EXPECT_FALSE(trials.adopt(told, now + 30s)) << "nobody has it any more";
  trials.end(unwanted, silent, now);
  sweeps.withdraw(sweep, now);
  EXPECT_FALSE(trials.adopt(unwanted, now + 30s));
  EXPECT_EQ(trials.get(3).state, TrialState::kCancelled);
}

TEST_F(TrialStoreTest, TrialThatGetsFurtherEachTimeMayBeLostAnyNumberOfTimesWithoutWaiting) {
  submit(sweep_of("s", 1, 1));
  for (std::uint32_t attempt = 1; attempt <= 2 * TrialStore::kDeathsInARow; ++attempt) {
    const Lease run = lease(1);
    trials.start(run.run, {.total_steps = 100}, now);
    MetricStore{db}.append(run.run, {{.name = "loss", .steps = {attempt}, .values = {1}, .times_ms = {1}}});
    trials.note_death({run.run});
    EXPECT_EQ(end(run.run, RunState::kLost, "preempted"), TrialState::kQueued);
    EXPECT_EQ(trials.get(1).not_before, Time{});
  }
}

TEST_F(TrialStoreTest, RestartGivesEveryLeaseTheTimeToComeBack) {
  submit(sweep_of("s", 2, 1));
  lease(1);
  lease(2);
  trials.renew_all(now + 90s);
  EXPECT_THAT(trials.expired(now + 89s), IsEmpty());
  EXPECT_EQ(trials.expired(now + 90s).size(), 2u);
}

TEST_F(TrialStoreTest, CompletedRunCompletesItsTrial) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  EXPECT_EQ(trials.get(1).state, TrialState::kRunning);
  EXPECT_EQ(trials.run(id).state, RunState::kRunning);
  EXPECT_EQ(trials.run(id).total_steps, 100u);
  EXPECT_EQ(end(id, RunState::kCompleted), TrialState::kCompleted);
  EXPECT_EQ(trials.run(id).ended, now);
  EXPECT_THAT(queue(), IsEmpty());
  EXPECT_EQ(error_of([&] { end(id, RunState::kCompleted); }).first, Code::kFailedPrecondition)
      << "an end is told once";
}

TEST_F(TrialStoreTest, FailureIsRetriedAfterABackOffThatDoublesUntilNoRetryIsLeft) {
  auto text = sweep_of("s", 1, 1);
  text.trials[0].max_retries = 9;
  submit(text);
  Milliseconds expected = 1s;
  for (int failure = 1; failure <= 9; ++failure) {
    EXPECT_EQ(end(run(1), RunState::kFailed, "out of memory"), TrialState::kQueued);
    EXPECT_THAT(queue(), IsEmpty());
    EXPECT_EQ(trials.get(1).not_before - now, expected);
    now = trials.get(1).not_before;
    EXPECT_THAT(queue(), ElementsAre(1));
    expected = std::min<Milliseconds>(2 * expected, 60s);
  }
  EXPECT_EQ(end(run(1), RunState::kFailed, "out of memory"), TrialState::kFailed);
  EXPECT_EQ(trials.get(1).reason, "out of memory");
  EXPECT_EQ(trials.get(1).failures, 10);
}

TEST_F(TrialStoreTest, FailureThatWouldHappenAgainIsNotRetried) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  EXPECT_EQ(
      trials.end(id,
                 {.state = RunState::kFailed, .reason = "no such folder", .exit_code = 3, .retryable = false},
                 now),
      TrialState::kFailed);
  EXPECT_EQ(trials.run(id).exit_code, 3);
  EXPECT_FALSE(trials.run(id).signal);
}

TEST_F(TrialStoreTest, StoppedRunGoesBackToTheQueueButIsCancelledWhenNobodyClaimsIt) {
  submit(sweep_of("s", 2, 1));
  const RunId first = run(1), second = run(2);
  EXPECT_EQ(end(first, RunState::kStopped, "paused"), TrialState::kQueued);
  EXPECT_THAT(sweeps.withdraw(1, now), ElementsAre(second));
  EXPECT_EQ(trials.get(1).state, TrialState::kCancelled) << "queued and unclaimed: cancelled at once";
  EXPECT_EQ(end(second, RunState::kStopped, "cancelled"), TrialState::kCancelled);
}

TEST_F(TrialStoreTest, UnclaimedRunThatCompletesAllTheSameIsKept) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  sweeps.withdraw(1, now);
  EXPECT_EQ(end(id, RunState::kCompleted), TrialState::kCompleted);
}

TEST_F(TrialStoreTest, RulesGiveKindsOfFailuresAttemptsOfTheirOwn) {
  auto text = sweep_of("s", 1, 1, "s");
  text.trials[0].retry_on = protocol::retry_rules(R"([["resources", 2], ["exit 7", 0], ["signal SEGV", 1]])");
  submit(text);
  const auto fail = [&](TrialStore::Ended how) {
    how.state = RunState::kFailed;
    return trials.end(run(1), how, now);
  };
  using Of = protocol::FailureClass;
  EXPECT_EQ(fail({.reason = "memory", .failure = Of::kResources}), TrialState::kQueued);
  EXPECT_EQ(trials.get(1).not_before, now + 1s);
  EXPECT_EQ(trials.get(1).reason, "runs again 1 s after it failed (resources)");
  EXPECT_EQ(fail({.reason = "crash", .signal = 11, .retryable = false}), TrialState::kQueued)
      << "who names this signal knows that it may pass";
  EXPECT_EQ(trials.get(1).not_before, now + 2s) << "all failures lengthen the back-off";
  EXPECT_EQ(fail({.reason = "other"}), TrialState::kQueued) << "the first that retry.max counts";
  EXPECT_EQ(fail({.reason = "memory", .failure = Of::kResources}), TrialState::kQueued);
  EXPECT_EQ(fail({.reason = "memory", .failure = Of::kResources}), TrialState::kFailed);
  EXPECT_EQ(trials.run(1).failure, Of::kResources);
  EXPECT_EQ(trials.run(1).failure_rule, "resources");
  EXPECT_EQ(trials.run(2).failure, Of::kTrial);
  EXPECT_EQ(trials.run(2).failure_rule, "signal SEGV");
  EXPECT_EQ(trials.run(3).failure_rule, "");

  sweeps.retry(sweeps.get("s").id, "", now, as_due, {});
  EXPECT_EQ(fail({.reason = "memory", .failure = Of::kResources}), TrialState::kQueued) << "counted anew";
  EXPECT_EQ(fail({.reason = "seven", .exit_code = 7}), TrialState::kFailed);
}

TEST_F(TrialStoreTest, WhatARuleCountsAsInfrastructureIsLostAndFailsNoTrial) {
  auto text = sweep_of("s", 1, 1, "s");
  text.trials[0].retry_on =
      protocol::retry_rules(R"([["exit 75", "infrastructure"], ["log NCCL .*", "infrastructure"]])");
  text.trials[0].max_retries = 0;
  submit(text);
  for (int time = 0; time < 8; ++time) {
    const RunId id = run(1);
    const TrialStore::Ended by_code{.state = RunState::kFailed, .reason = "no node", .exit_code = 75};
    const TrialStore::Ended by_log{
        .state = RunState::kFailed, .reason = "exit code 1", .exit_code = 1, .log_patterns = {"NCCL .*"}};
    EXPECT_EQ(trials.end(id, time % 2 == 0 ? by_code : by_log, now), TrialState::kQueued);
    EXPECT_EQ(trials.run(id).state, RunState::kLost);
    EXPECT_EQ(trials.run(id).failure, protocol::FailureClass::kInfrastructure);
    EXPECT_EQ(trials.run(id).failure_rule, time % 2 == 0 ? "exit 75" : "log NCCL .*");
  }
  EXPECT_EQ(trials.get(1).not_before, now + 64s) << "it waits longer each time";
  EXPECT_EQ(trials.end(run(1), {.state = RunState::kFailed, .exit_code = 1}, now), TrialState::kFailed);
}

TEST_F(TrialStoreTest, UnclaimedRunThatFailsIsNotRetried) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  sweeps.withdraw(1, now);
  EXPECT_EQ(end(id, RunState::kFailed), TrialState::kCancelled);
}

TEST_F(TrialStoreTest, FirstFingerprintIsPinnedAndAnotherIsRefused) {
  submit(sweep_of("s", 3, 1));
  run(1, "f1");
  EXPECT_EQ(trials.fingerprint("cifar10"), "f1");
  EXPECT_EQ(trials.get(1).identity.data_fingerprint, "f1");
  EXPECT_EQ(trials.get(2).identity.data_fingerprint, "f1") << "it will run on that data or not at all";
  const Lease other = lease(2, "bob");
  const auto [code, message] = error_of([&] { trials.start(other.run, {.data_fingerprint = "f2"}, now); });
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_THAT(message,
              testing::AllOf(HasSubstr("cifar10"), HasSubstr("bob"), HasSubstr("f1"), HasSubstr("f2")));
  EXPECT_EQ(trials.get(2).state, TrialState::kLeased) << "a refused start leaves nothing behind";
  run(3, "f1");
}

TEST_F(TrialStoreTest, OfARunsCheckpointsTheNewestAreKept) {
  submit(sweep_of("s", 1, 1));
  const RunId first = run(1);
  const auto add = [&](RunId of, std::uint32_t step) {
    trials.add_checkpoint({.run = of, .step = step, .host = "h", .path = "/p", .sha256 = "aa"});
  };
  for (std::uint32_t step = 1; step <= 1000; ++step) add(first, step);
  add(first, 1);
  ASSERT_EQ(trials.checkpoints_of(1).size(), TrialStore::kMostCheckpoints);
  EXPECT_EQ(trials.checkpoints_of(1).front().step, 1000u);
  EXPECT_EQ(trials.checkpoints_of(1).back().step, 901u);
  end(first, RunState::kLost);
  add(run(1), 10);
  EXPECT_EQ(trials.checkpoints_of(1).size(), TrialStore::kMostCheckpoints + 1) << "of each run";
}

TEST_F(TrialStoreTest, ResumedRunHoldsTheWholeHistoryUpToItsCheckpoint) {
  submit(sweep_of("s", 1, 1));
  const RunId first = run(1);
  metrics.append(
      first,
      {{.name = "train/loss", .steps = {10, 20, 30}, .values = {3.0, 2.0, 9.0}, .times_ms = {1, 2, 3}}});
  trials.add_checkpoint({.run = first, .step = 10, .host = "alice-host", .path = "/a/10", .sha256 = "aa"});
  trials.add_checkpoint({.run = first, .step = 20, .host = "alice-host", .path = "/a/20", .sha256 = "bb"});
  end(first, RunState::kLost);

  const Lease second = lease(1, "bob");
  ASSERT_EQ(trials.checkpoints_of(1).size(), 2u);
  EXPECT_EQ(trials.checkpoints_of(1)[0].step, 20u) << "the newest is what to resume from";
  trials.start(
      second.run,
      {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = 20, .resumed_from_run = first},
      now);
  metrics.append(second.run, {{.name = "train/loss", .steps = {30}, .values = {1.5}, .times_ms = {5}}});

  const auto series = metrics.series(second.run, {}, 0);
  ASSERT_EQ(series.size(), 1u);
  EXPECT_THAT(series[0].steps, ElementsAre(10, 20, 30));
  EXPECT_THAT(series[0].values, ElementsAre(3.0, 2.0, 1.5))
      << "what the lost run did after its checkpoint is not history";
  const auto summary = metrics.summaries(second.run)[0];
  EXPECT_EQ(summary.count, 3u);
  EXPECT_EQ(summary.max, 3.0);
  EXPECT_EQ(summary.best, 1.5);
  EXPECT_EQ(trials.run(second.run).resumed_from_step, 20u);
  EXPECT_EQ(trials.run(second.run).step, 30u);
  EXPECT_EQ(trials.checkpoints_of(1).size(), 2u);
}

TEST_F(TrialStoreTest, ARunIsRunningFromTheStartOfItsProgramWhateverThisSaysLater) {
  submit(sweep_of("s", 1, 3));
  const auto launched = [&](TrialId trial, Time by_its_worker) {
    const RunId run = lease(trial).run;
    trials.launch(run, by_its_worker, now + 10s);
    return run;
  };
  const RunId run = launched(1, now + 4s);
  EXPECT_EQ(trials.run(run).state, RunState::kRunning);
  EXPECT_EQ(trials.get(1).state, TrialState::kRunning);
  EXPECT_EQ(trials.run(run).started, now + 4s);
  trials.start(run, {.total_steps = 7}, now + 60s);
  EXPECT_EQ(trials.run(run).started, now + 4s) << "its first metric came a minute later";
  EXPECT_EQ(trials.run(run).total_steps, 7u);
  EXPECT_EQ(trials.run(launched(2, now - 1h)).started, now)
      << "its worker's clock is late: not before its lease";
  EXPECT_EQ(trials.run(launched(3, now + 1h)).started, now + 10s) << "or early: not after it was said";
  trials.end(run, {.state = RunState::kCompleted, .took = Milliseconds{1234}}, {now, now});
  EXPECT_EQ(trials.run(run).took, Milliseconds{1234});
  EXPECT_EQ(error_of([&] { trials.launch(run, now, now); }).first, Code::kFailedPrecondition);
}

TEST_F(TrialStoreTest, RunThatGoesOnFromAnInexactOneIsInexactItself) {
  submit(sweep_of("s", 1, 1));
  const auto attempt = [&](RunId from, bool exact) {
    const RunId run = lease(1).run;
    const auto step = from == 0 ? std::nullopt : std::optional<std::uint32_t>{10};
    trials.start(run, {.resumed_from_step = step, .resumed_from_run = from, .bit_exact = exact}, now);
    end(run, RunState::kStopped);
    return run;
  };
  const RunId first = attempt(0, true), moved = attempt(first, false), last = attempt(moved, true);
  EXPECT_TRUE(trials.run(first).bit_exact);
  EXPECT_FALSE(trials.run(moved).bit_exact);
  EXPECT_FALSE(trials.run(last).bit_exact);
}

TEST_F(TrialStoreTest, ResumingFromAnotherTrialsRunIsRefused) {
  submit(sweep_of("s", 2, 1));
  const RunId stranger = run(1);
  const Lease mine = lease(2);
  EXPECT_EQ(error_of([&] {
              trials.start(mine.run, {.resumed_from_step = 5, .resumed_from_run = stranger}, now);
            }).first,
            Code::kFailedPrecondition);
}

TEST_F(TrialStoreTest, WaitingReasonIsToldUntilTheTrialIsLeased) {
  submit(sweep_of("s", 1, 1));
  QueueStore{db}.set_waiting(1, "all 2 slots are busy");
  EXPECT_EQ(trials.get(1).reason, "all 2 slots are busy");
  trials.set_waiting(1, "worker alice refused it: busy");
  EXPECT_EQ(trials.get(1).reason, "worker alice refused it: busy")
      << "what is of this trial alone goes first";
  trials.set_waiting(1, "");
  EXPECT_EQ(trials.get(1).reason, "all 2 slots are busy");
  lease(1);
  EXPECT_EQ(trials.get(1).reason, "");
}

TEST_F(TrialStoreTest, EachStepOfATrialIsKeptWithItsRunAndReason) {
  submit(sweep_of("s", 1, 1));
  const RunId first = run(1);
  end(first, RunState::kLost, "its worker was killed");
  const RunId second = run(1);
  end(second, RunState::kCompleted);
  const auto steps = [&] {
    return db
        .prepared("SELECT was || ' ' || state || ' ' || run_id || ' ' || reason FROM transition ORDER BY id")
        .all([](const Statement& row) { return row.text(0); });
  };
  EXPECT_THAT(steps(),
              ElementsAre("queued leased 1 ", "leased running 1 ", "running queued 1 its worker was killed",
                          "queued leased 2 ", "leased running 2 ", "running completed 2 "));
  trials.forget_transitions(2);
  EXPECT_THAT(steps(), ElementsAre("leased running 2 ", "running completed 2 "));
}

TEST_F(TrialStoreTest, TrialsThatNeedTheSameHaveOneShape) {
  SweepText text = sweep_of("s", 3, 1);
  text.trials[1].gpus = 2;
  submit(text);
  const QueueStore queue{db};
  EXPECT_EQ(queue.open(1)->shape, queue.open(3)->shape);
  EXPECT_NE(queue.open(1)->shape, queue.open(2)->shape);
  EXPECT_EQ(queue.demand(queue.open(2)->shape).gpus, 2);
  EXPECT_EQ(queue.demand(queue.open(1)->shape).data, text.trials[0].data);
}

TEST_F(TrialStoreTest, RunsAreListedByAttemptOrNewestFirst) {
  submit(sweep_of("s", 2, 1));
  const RunId a1 = run(1);
  end(a1, RunState::kLost);
  const RunId b1 = run(2), a2 = run(1);
  const auto ids = [](const std::vector<RunRecord>& runs) {
    std::vector<RunId> result;
    for (const auto& record : runs) result.push_back(record.id);
    return result;
  };
  EXPECT_THAT(ids(trials.runs_of(1)), ElementsAre(a1, a2));
  EXPECT_THAT(ids(trials.list_runs({}, 10)), ElementsAre(a2, b1, a1));
  EXPECT_THAT(ids(trials.list_runs({.sweep = 1, .trial = 2}, 10)), ElementsAre(b1));
  EXPECT_THAT(ids(trials.list_runs({}, 1)), ElementsAre(a2));
  EXPECT_THAT(ids(trials.list_runs({.before = a2}, 10)), ElementsAre(b1, a1));
  EXPECT_EQ(trials.count_runs({.before = a2}), 2u);
  EXPECT_EQ(trials.count_runs({.trial = 2}), 1u);
  const auto [code, message] = error_of([&] { trials.run(17); });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(message, testing::AllOf(HasSubstr("17"), HasSubstr("newest is 3")));
}

}  // namespace
}  // namespace abl::storage
