// SPDX-License-Identifier: Apache-2.0
#include "storage/sweep_store.h"

#include <random>

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Retry kUnfilled{.ended = false, .held = false, .unfilled = true};

class SweepStoreTest : public StoreTest {
 protected:
  TrialCounts counts(const std::string& name) { return sweeps.get(name).trials; }
};

TEST_F(SweepStoreTest, SubmittedSweepIsThereAsItWasGiven) {
  const auto text = sweep_of("msf", 2, 3);
  const Submitted submitted = submit(text);
  EXPECT_EQ(submitted.new_trials, 6u);
  EXPECT_EQ(submitted.shared_trials, 0u);
  const SweepRecord sweep = sweeps.get("msf");
  EXPECT_EQ(sweep.id, submitted.sweep);
  EXPECT_EQ(sweep.text, text.sweep.text);
  EXPECT_EQ(sweep.canonical_hash, "c-msf");
  EXPECT_EQ(sweep.rows, 2u);
  EXPECT_EQ(sweep.seeds, 3u);
  EXPECT_EQ(sweep.trials.queued, 6u);
  EXPECT_EQ(sweep.created, now);
  EXPECT_FALSE(sweep.finished);
}

TEST_F(SweepStoreTest, NameThatIsTakenIsRefusedAndNothingIsStored) {
  submit(sweep_of("msf", 1, 1));
  const auto [code, message] = error_of([&] { submit(sweep_of("msf", 2, 2)); });
  EXPECT_EQ(code, Code::kAlreadyExists);
  EXPECT_THAT(message, HasSubstr("'msf'"));
  EXPECT_EQ(counts("msf").total(), 1u);
}

TEST_F(SweepStoreTest, UnknownSweepIsNotFoundWithTheNearestName) {
  EXPECT_THAT(error_of([&] { sweeps.get("x"); }).second, HasSubstr("none was submitted"));
  submit(sweep_of("msf-sharing", 1, 1));
  EXPECT_EQ(sweeps.find("msf-shering"), std::nullopt);
  const auto [code, message] = error_of([&] { sweeps.get("msf-shering"); });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(message, HasSubstr("did you mean 'msf-sharing'?"));
  EXPECT_THAT(error_of([&] { sweeps.get("zzz"); }).second, HasSubstr("newest is 'msf-sharing'"));
}

TEST_F(SweepStoreTest, TrialThatIsThereIsClaimedNotQueuedAgain) {
  submit(sweep_of("first", 2, 1));
  complete(1, 80);
  const Submitted second = submit(sweep_of("second", 3, 1));  // rows a, b are the first sweep's, c is new
  EXPECT_EQ(second.shared_trials, 2u);
  EXPECT_EQ(second.new_trials, 1u);
  EXPECT_EQ(counts("second").completed, 1u);
  EXPECT_THAT(queue(), ElementsAre(2, 3));
  EXPECT_THAT(sweeps.claimants(1), ElementsAre(1, 2));
  ASSERT_EQ(sweeps.positions(1).size(), 2u);
  EXPECT_EQ(sweeps.positions(1)[1].sweep, "second");
  EXPECT_TRUE(sweeps.claims(2)[0].shared);
  EXPECT_FALSE(sweeps.claims(2)[2].shared);
  EXPECT_EQ(sweeps.claims(2)[0].last.at("val/top1"), 80);
}

TEST_F(SweepStoreTest, AnotherResultVersionIsAnotherTrial) {
  submit(sweep_of("v1", 2, 1));
  auto text = sweep_of("v2", 2, 1);
  text.trials[0].result_version = 2;
  const Submitted submitted = submit(text);
  EXPECT_EQ(submitted.new_trials, 1u);
  EXPECT_EQ(submitted.shared_trials, 1u) << "what the change does not touch is trained once";
}

TEST_F(SweepStoreTest, CommandThatMayNotBeReusedIsNeverShared) {
  auto first = sweep_of("first", 1, 1), second = sweep_of("second", 1, 1);
  first.trials[0].reusable = second.trials[0].reusable = false;
  submit(first);
  EXPECT_EQ(submit(second).new_trials, 1u);
}

TEST_F(SweepStoreTest, RowsOfOneSweepThatAreTheSameShareTheirTrial) {
  auto text = sweep_of("s", 2, 1);
  text.trials[1].config_hash = text.trials[0].config_hash;
  const Submitted submitted = submit(text);
  EXPECT_EQ(submitted.new_trials, 1u);
  EXPECT_EQ(submitted.shared_trials, 0u);
  EXPECT_EQ(counts("s").total(), 2u) << "two claims";
  EXPECT_FALSE(sweeps.claims(1)[0].shared) << "no other sweep claims it";
  EXPECT_THAT(queue(), ElementsAre(1));
}

TEST_F(SweepStoreTest, TrialQueuedAfterThePinIsSharedWithThoseBefore) {
  submit(sweep_of("first", 2, 1));
  run(1, "f1");
  EXPECT_EQ(submit(sweep_of("second", 2, 1)).shared_trials, 2u);
  EXPECT_EQ(submit(sweep_of("third", 1, 1, "new")).new_trials, 1u);
  EXPECT_EQ(trials.get(3).identity.data_fingerprint, "f1");
}

TEST_F(SweepStoreTest, FailedOrCancelledTrialGoesBackToTheQueueWhenClaimedAgain) {
  auto text = sweep_of("first", 2, 1);
  for (auto& trial : text.trials) trial.max_retries = 0;
  submit(text);
  end(run(1), RunState::kFailed, "diverged");
  sweeps.withdraw(1, now);
  EXPECT_EQ(trials.get(2).state, TrialState::kCancelled);
  submit(sweep_of("second", 2, 1));
  EXPECT_THAT(queue(), ElementsAre(1, 2));
  EXPECT_EQ(trials.get(1).failures, 0);
}

TEST_F(SweepStoreTest, CancelStopsWhatNobodyElseClaims) {
  submit(sweep_of("first", 4, 1));
  submit(sweep_of("second", 1, 1));  // claims trial 1 too
  const RunId shared = run(1), mine = run(2);
  complete(3, 80);
  EXPECT_THAT(sweeps.withdraw(1, now), ElementsAre(mine));
  EXPECT_TRUE(trials.under_way(shared));
  EXPECT_EQ(trials.get(4).state, TrialState::kCancelled);
  EXPECT_EQ(trials.get(3).state, TrialState::kCompleted) << "results stay";
  EXPECT_EQ(sweeps.get("first").state, SweepState::kCancelled);
  EXPECT_EQ(sweeps.get("first").finished, now);
  EXPECT_THAT(sweeps.claimants(1), ElementsAre(2));
}

TEST_F(SweepStoreTest, RetryQueuesFailedAndCancelledTrialsOfARowOrOfAll) {
  auto text = sweep_of("s", 3, 1);
  for (auto& trial : text.trials) trial.max_retries = 0;
  submit(text);
  end(run(1), RunState::kFailed, "diverged");
  end(run(2), RunState::kFailed, "diverged");
  complete(3, 80);
  EXPECT_EQ(counts("s").failed, 2u);
  EXPECT_EQ(sweeps.get("s").finished, now);
  EXPECT_EQ(sweeps.retry(1, "b", now, as_due), 1u);
  EXPECT_THAT(queue(), ElementsAre(2));
  EXPECT_FALSE(sweeps.get("s").finished);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due), 1u);
  EXPECT_THAT(queue(), ElementsAre(1, 2));
  EXPECT_EQ(sweeps.retry(1, "", now, as_due), 0u);
  EXPECT_THAT(error_of([&] { sweeps.retry(1, "d", now, as_due); }).second, HasSubstr("no row 'd'"));
}

TEST_F(SweepStoreTest, ARowThatIsHereForItsWeightsLacksNoMetric) {
  auto text = sweep_of("s", 2, 1);
  text.sweep.rows[1].other_sweep = "pretrained.yaml";
  submit(text);
  complete(1, 80);
  complete(2, 70, "val/knn20");
  EXPECT_EQ(counts("s").completed, 2u);
  EXPECT_EQ(counts("s").unfilled, 0u);
  EXPECT_FALSE(sweeps.claims(1)[1].unfilled);
}

TEST_F(SweepStoreTest, WhatNoTrainingOfItsTaskReportsIsNotMissing) {
  auto text = sweep_of("s", 2, 1);
  text.trials[1].config = R"({"recipe":{},"task":{"kind":"dino"}})";
  submit(text);
  complete(1, 80);
  complete(2, 70, "val/knn20");
  EXPECT_EQ(counts("s").unfilled, 0u) << "no val/top1 of self-distillation";
}

TEST_F(SweepStoreTest, RetryRunsWhatLacksAMetricAgainAndLeavesItToSweepsThatHaveItFilled) {
  auto first = sweep_of("first", 2, 1), other = sweep_of("other", 2, 1);
  other.sweep.columns[0].source = "val/loss";
  submit(first);
  submit(other);
  complete(1, 0.3, "val/loss");
  complete(2, 80);
  EXPECT_EQ(counts("first").unfilled, 1u);
  EXPECT_EQ(counts("other").unfilled, 1u);
  EXPECT_TRUE(sweeps.claims(1)[0].unfilled);
  EXPECT_FALSE(sweeps.claims(1)[1].unfilled);
  EXPECT_EQ(sweeps.retry(1, "b", now, as_due, kUnfilled), 0u);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 1u);
  EXPECT_THAT(queue(), ElementsAre(3));
  EXPECT_EQ(trials.get(3).identity.config_hash, trials.get(1).identity.config_hash);
  EXPECT_EQ(trials.get(3).identity.data_fingerprint, "f1");
  EXPECT_EQ(counts("first").completed, 1u);
  EXPECT_EQ(counts("first").queued, 1u);
  EXPECT_EQ(counts("first").unfilled, 0u);
  EXPECT_EQ(counts("other").completed, 2u) << "its value stays";
  EXPECT_EQ(sweeps.claims(2)[0].last.at("val/loss"), 0.3);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 0u) << "it is queued already";

  EXPECT_EQ(submit(sweep_of("third", 1, 1)).shared_trials, 1u);
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 3)) << "a new sweep shares the one that runs";
  complete(3, 79);
  EXPECT_EQ(counts("first").unfilled, 0u);
  EXPECT_EQ(counts("first").completed, 2u);
}

TEST_F(SweepStoreTest, ACancelledSweepHasTheCompletedTrialsBackThatWereToRunAgain) {
  submit(sweep_of("s", 2, 1));
  const RunId first = complete(1, 0.3, "val/loss");
  complete(2, 80);
  sweeps.retry(1, "", now, as_due, kUnfilled);
  EXPECT_EQ(counts("s").queued, 1u);
  sweeps.withdraw(1, now);
  EXPECT_EQ(counts("s").completed, 2u);
  EXPECT_EQ(counts("s").cancelled, 0u);
  EXPECT_EQ(counts("s").unfilled, 1u);
  EXPECT_EQ(sweeps.claims(1)[0].run, first);
  EXPECT_TRUE(queue().empty());
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 1u) << "once more";
  EXPECT_THAT(queue(), ElementsAre(3));
  run(3);
  EXPECT_EQ(sweeps.withdraw(1, now).size(), 1u) << "what runs is to be stopped";
  EXPECT_EQ(sweeps.claims(1)[0].run, first);
}

TEST_F(SweepStoreTest, RetryTakesTheTrialThatAnotherSweepHasPutInThePlace) {
  submit(sweep_of("first", 1, 1));
  submit(sweep_of("second", 1, 1));
  complete(1, 0.3, "val/loss");
  sweeps.retry(1, "", now, as_due, kUnfilled);
  EXPECT_EQ(sweeps.retry(2, "", now, as_due, kUnfilled), 1u);
  EXPECT_THAT(sweeps.claimants(2), ElementsAre(1, 2));
  complete(2, 0.3, "val/loss");  // it still lacks it
  EXPECT_EQ(counts("second").unfilled, 1u);
  EXPECT_EQ(sweeps.retry(2, "", now, as_due, kUnfilled), 1u);
  EXPECT_THAT(queue(), ElementsAre(3));
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 1u);
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2));
}

TEST_F(SweepStoreTest, ARerunPutsNewTrialsInThePlaceOfCompletedOnesInThisSweepAlone) {
  constexpr Retry kRerun{.ended = false, .held = false, .completed = true};
  submit(sweep_of("first", 2, 1));
  submit(sweep_of("second", 2, 1));
  complete(1, 80);
  EXPECT_EQ(sweeps.retry(1, "b", now, as_due, kRerun), 0u) << "it is not completed";
  EXPECT_EQ(sweeps.retry(1, "a", now, as_due, kRerun), 1u);
  EXPECT_THAT(queue(), testing::UnorderedElementsAre(2, 3));
  EXPECT_EQ(sweeps.retry(2, "a", now, as_due, kRerun), 1u) << "it takes the one that is to come";
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2));
  complete(3, 70);
  EXPECT_EQ(sweeps.retry(2, "a", now, as_due, kRerun), 1u);
  EXPECT_EQ(sweeps.claims(1)[0].last.at("val/top1"), 70);
  EXPECT_EQ(sweeps.claims(2)[0].trial, 4u);
  EXPECT_EQ(sweeps.claims(2)[0].state, TrialState::kQueued);
  sweeps.withdraw(2, now);
  EXPECT_EQ(sweeps.claims(2)[0].trial, 3u)
      << "cancelled before it was there: the result before has its place back";
}

TEST_F(SweepStoreTest, ASweepKeepsEverythingUnderAnotherName) {
  submit(sweep_of("first", 1, 1));
  submit(sweep_of("second", 1, 1));
  EXPECT_EQ(error_of([&] { sweeps.rename(1, "second", "{}"); }).first, Code::kAlreadyExists);
  sweeps.rename(1, "third", "{}");
  EXPECT_EQ(sweeps.find("first"), std::nullopt);
  EXPECT_EQ(sweeps.get("third").id, 1u);
  EXPECT_EQ(sweeps.get("third").canonical_hash, sha256_hex("{}"));
  EXPECT_EQ(sweeps.name_of(1), "third");
}

TEST_F(SweepStoreTest, RetryNeverSharesACommandThatMayNotBe) {
  auto text = sweep_of("s", 1, 1);
  text.trials[0].reusable = false;
  submit(text);
  complete(1, 0.3, "val/loss");
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 1u);
  EXPECT_FALSE(trials.get(2).reusable);
}

TEST_F(SweepStoreTest, RetryOfACancelledSweepClaimsItsTrialsAgain) {
  submit(sweep_of("s", 2, 1));
  complete(1, 80);
  sweeps.withdraw(1, now);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due), 1u);
  EXPECT_EQ(sweeps.get("s").state, SweepState::kActive);
  EXPECT_EQ(counts("s").completed, 1u);
  EXPECT_THAT(queue(), ElementsAre(2));
}

TEST_F(SweepStoreTest, RetryOfCompletedTrialsOfACancelledSweepClaimsTheseAgain) {
  submit(sweep_of("s", 3, 1));
  complete(1, 0.3, "val/loss");
  complete(2, 80);
  sweeps.withdraw(1, now);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, {.ended = false}), 0u) << "nothing is held";
  EXPECT_EQ(sweeps.get("s").state, SweepState::kCancelled);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kUnfilled), 1u);
  EXPECT_EQ(sweeps.get("s").state, SweepState::kActive);
  EXPECT_THAT(queue(), ElementsAre(4));
  EXPECT_EQ(counts("s").queued, 1u);
  EXPECT_EQ(counts("s").completed, 1u);
  EXPECT_EQ(counts("s").cancelled, 1u) << "what was cancelled stays so";
}

TEST_F(SweepStoreTest, RetryOfHeldTrialsOfACancelledSweepClaimsTheseAgain) {
  submit(sweep_of("s", 2, 1));
  submit(sweep_of("other", 1, 1));  // claims trial 1 too
  db.execute("UPDATE trial SET state = 'held' WHERE id = 1");
  sweeps.withdraw(1, now);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, {.ended = false}), 1u);
  EXPECT_THAT(sweeps.claimants(1), ElementsAre(1, 2));
  EXPECT_EQ(sweeps.get("s").state, SweepState::kActive);
  EXPECT_EQ(counts("s").queued, 1u);
  EXPECT_EQ(counts("s").cancelled, 1u);
}

TEST_F(SweepStoreTest, SweepIsFinishedWhenItsLastTrialIs) {
  submit(sweep_of("s", 2, 1));
  now += 10s;
  complete(1, 80);
  EXPECT_FALSE(sweeps.get("s").finished);
  now += 10s;
  complete(2, 81);
  EXPECT_EQ(sweeps.get("s").finished, now);
}

TEST_F(SweepStoreTest, SweepsAreListedNewestFirst) {
  submit(sweep_of("one", 1, 1));
  submit(sweep_of("two", 1, 1));
  const auto list = sweeps.list();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "two");
  sweeps.set_state(1, SweepState::kPaused, now);
  EXPECT_EQ(sweeps.get("one").state, SweepState::kPaused);
}

TEST_F(SweepStoreTest, ListsReadSummariesAndNeverThePoints) {
  submit(sweep_of("s", 1, 1));
  complete(1, 80);
  db.execute("DELETE FROM point");
  EXPECT_EQ(sweeps.claims(1)[0].last.at("val/top1"), 80);
}

TEST_F(SweepStoreTest, CancelledSweepKeepsItsTrialsAndCountsWhatDidNotEndAsCancelled) {
  submit(sweep_of("s", 3, 1));
  complete(1, 80);
  run(2);
  sweeps.withdraw(1, now);
  EXPECT_EQ(counts("s").completed, 1u);
  EXPECT_EQ(counts("s").cancelled, 2u) << "one ran, one waited";
  EXPECT_EQ(counts("s").open(), 0u);
  std::vector<TrialState> states;
  for (const auto& claim : sweeps.claims(1)) states.push_back(claim.state);
  EXPECT_THAT(states, ElementsAre(TrialState::kCompleted, TrialState::kCancelled, TrialState::kCancelled));
}

TEST_F(SweepStoreTest, WhatAnotherSweepGoesOnTrainingIsCancelledForTheOneThatWasCancelled) {
  submit(sweep_of("first", 1, 1));
  submit(sweep_of("second", 1, 1));
  sweeps.withdraw(1, now);
  EXPECT_EQ(counts("first").cancelled, 1u);
  EXPECT_EQ(counts("second").queued, 1u);
  complete(1, 80);
  EXPECT_EQ(counts("first").completed, 1u) << "its table has the value";
}

TEST_F(SweepStoreTest, TrialsOfAPartAreThoseOfWholeRows) {
  submit(sweep_of("s", 3, 2));
  const auto rows = [&](const Rows& part) {
    std::vector<int> of_part;
    for (const auto& claim : sweeps.claims(1, part)) of_part.push_back(claim.row);
    return of_part;
  };
  EXPECT_THAT(rows({.most_trials = 3}), ElementsAre(0, 0));
  EXPECT_THAT(rows({.most_trials = 4}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(rows({.most_trials = 1}), ElementsAre(0, 0)) << "one row at least";
  EXPECT_THAT(rows({.first = 2, .most_trials = 3}), ElementsAre(2, 2));
  EXPECT_THAT(rows({.first = 3}), IsEmpty());
}

TEST_F(SweepStoreTest, AListGoesOnAfterASweep) {
  for (const char* name : {"one", "two", "three"}) submit(sweep_of(name, 2, 3, name));
  const auto page = sweeps.list(2), rest = sweeps.list(2, page.back().id);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[1].name, "two");
  EXPECT_EQ(page[1].rows, 2u);
  EXPECT_EQ(page[1].seeds, 3u);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].name, "one");
  EXPECT_EQ(sweeps.newest_but(1), 2u);
  EXPECT_EQ(sweeps.newest_but(3), 0u) << "there are no more";
}

TEST_F(SweepStoreTest, ABriefRecordHasEverythingButTheTexts) {
  submit(sweep_of("s", 1, 1));
  const SweepRecord whole = sweeps.get("s"), brief = sweeps.get_brief("s");
  EXPECT_EQ(brief.text, "");
  EXPECT_EQ(brief.canonical, "");
  EXPECT_EQ(sweeps.text(brief.id), whole.text);
  EXPECT_EQ(brief.trials.queued, whole.trials.queued);
  EXPECT_EQ(error_of([&] { (void)sweeps.get_brief("t"); }).first, Code::kNotFound);
}

TEST_F(SweepStoreTest, RunsOfASweepAreListedNewestFirstAfterARun) {
  submit(sweep_of("s", 2, 1));
  submit(sweep_of("t", 1, 1, "other"));
  for (const TrialId trial : {1u, 3u, 2u}) complete(trial, 80);
  EXPECT_THAT(sweeps.runs(std::nullopt, 0, 10), ElementsAre(3, 2, 1));
  EXPECT_THAT(sweeps.runs(std::nullopt, 3, 1), ElementsAre(2));
  EXPECT_THAT(sweeps.runs(1, 0, 10), ElementsAre(3, 1));
  EXPECT_THAT(sweeps.runs(1, 3, 10), ElementsAre(1));
  EXPECT_THAT(sweeps.runs(2, 2, 10), IsEmpty());
}

TEST_F(SweepStoreTest, ATrialIsSeenWhereItStandsWithWhatItWaitsFor) {
  submit(sweep_of("s", 2, 1));
  submit(sweep_of("t", 1, 1));  // shares a's trial
  trials.set_waiting(1, "alice refused it");
  const auto seen = sweeps.seen_claims(2, 1, 0);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen[0].waits);
  EXPECT_EQ(seen[0].own_reason, "alice refused it");
  EXPECT_TRUE(seen[0].claim.shared);
  EXPECT_THAT(sweeps.seen_claims(2, 2, 0), IsEmpty()) << "it is of the other alone";
  EXPECT_THAT(sweeps.sweeps_with(1), ElementsAre(1, 2));
  EXPECT_THAT(sweeps.rows_with(1, 2), ElementsAre(1));
  complete(1, 80);
  EXPECT_FALSE(sweeps.seen_claims(2, 1, 0)[0].waits);
  EXPECT_THAT(sweeps.seen_claims(2, 1, 0)[0].claim.last, IsEmpty());
  EXPECT_EQ(sweeps.seen_claims(2, 1, 5)[0].claim.last.at("val/top1"), 80);
}

TEST_F(SweepStoreTest, OfTooManyMetricsThoseThatColumnsTakeAreThere) {
  submit(sweep_of("s", 1, 1));
  const RunId id = run(1);
  for (const char* name : {"a", "b", "c", "val/top1"})
    metrics.append(id, {{.name = name, .steps = {1}, .values = {7}, .times_ms = {1}}});
  std::uint32_t left_out = 0;
  EXPECT_THAT(metrics.last_values(id, 1, 2, left_out),
              ElementsAre(testing::Pair("a", 7), testing::Pair("val/top1", 7)));
  EXPECT_EQ(left_out, 2u);
  const auto summaries = metrics.summaries(id, 2);
  ASSERT_EQ(summaries.size(), 2u);
  EXPECT_EQ(summaries[1].name, "val/top1");
  EXPECT_EQ(metrics.summaries(id).size(), 4u);
}

TEST_F(SweepStoreTest, WhoeverReadsAfterAQueryThatWasCancelledSeesWhatIsThereThen) {
  submit(sweep_of("s", 10, 1));
  for (TrialId trial = 1; trial <= 10; ++trial) complete(trial, 80);
  Database reader{folder / "results.db", Database::Mode::kReadOnly};
  const SweepStore read{reader};
  for (int most = 1; most <= 20; ++most) {
    {
      int looks = 0;
      const Reading turn{reader, [&] { return ++looks > most; }};
      try {
        (void)read.claims(1);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kCancelled);
      }
    }
    sweeps.set_priority(1, most);
    EXPECT_TRUE(db.empty_log(Milliseconds{1})) << "the cancelled one still reads, after look " << most;
    const Reading next{reader};
    EXPECT_EQ(read.get("s").priority, most);
  }
}

TEST_F(SweepStoreTest, WhatAReaderLeavesOpenEndsWithItsTurn) {
  submit(sweep_of("s", 2, 1));
  Database reader{folder / "results.db", Database::Mode::kReadOnly};
  {
    const Reading turn{reader};
    EXPECT_TRUE(reader.prepared("SELECT id FROM trial").step());
  }
  sweeps.set_priority(1, 7);
  EXPECT_TRUE(db.empty_log(Milliseconds{1}));
  EXPECT_EQ(SweepStore{reader}.get("s").priority, 7);
}

/// Whatever becomes of trials and claims, in whatever order: what is kept is what a count of all would say.
TEST_F(SweepStoreTest, TheKeptCountsAreThoseOfARecount) {
  std::minstd_rand random{3};
  const auto any = [&](int count) { return std::uniform_int_distribution{0, count - 1}(random); };
  const std::vector<std::string> names{"s0", "s1", "s2", "s3"};
  for (int i = 0; i < 4; ++i) submit(sweep_of(names[static_cast<std::size_t>(i)], 2 + i, 2));
  const Renew as_it_is = [](const TrialRecord& trial) {
    return RenewedTrial{trial.config, trial.identity.config_hash, trial.identity.result_version};
  };
  for (int step = 0; step < 600; ++step) {
    now += 1s;
    const auto sweep = static_cast<SweepId>(1 + any(4));
    const auto last = static_cast<int>(db.prepared("SELECT MAX(id) FROM trial")
                                           .one([](const Statement& row) { return row.integer(0); })
                                           .value());
    const auto trial = static_cast<TrialId>(1 + any(last));
    const TrialRecord record = trials.get(trial);
    switch (any(12)) {
      case 0:
        sweeps.withdraw(sweep, now);
        break;
      case 1:
        sweeps.retry(sweep, "", now, as_it_is,
                     {.ended = any(2) == 0, .held = any(2) == 0, .unfilled = any(2) == 0});
        break;
      case 2:
        sweeps.set_state(sweep, any(2) == 0 ? SweepState::kPaused : SweepState::kActive, now);
        break;
      case 3:
        sweeps.claim_instead(sweep, trial, static_cast<TrialId>(1 + any(last)));
        break;
      default:
        if (record.state == TrialState::kQueued) {
          if (const auto leased = trials.lease(trial, "alice", "host", now, now + 30s); leased && any(2) == 0)
            trials.start(leased->run, {.total_steps = 100, .data_fingerprint = "f1"}, now);
        } else if (record.state == TrialState::kLeased || record.state == TrialState::kRunning) {
          if (any(2) == 0)
            metrics.append(*record.run,
                           {{.name = "val/top1", .steps = {100}, .values = {80}, .times_ms = {1}}});
          constexpr RunState kEnds[]{RunState::kCompleted, RunState::kFailed, RunState::kStopped,
                                     RunState::kLost};
          trials.end(*record.run, {.state = kEnds[any(4)], .retryable = any(2) == 0, .worker_trouble = true},
                     now);
        }
    }
    const auto recount = db.prepared(R"sql(
        SELECT s.name, COUNT(*) FILTER (WHERE t.state = 'queued' AND NOT st.withdrawn),
               COUNT(*) FILTER (WHERE t.state = 'leased' AND NOT st.withdrawn),
               COUNT(*) FILTER (WHERE t.state = 'running' AND NOT st.withdrawn), COUNT(*) FILTER (WHERE t.state = 'completed'),
               COUNT(*) FILTER (WHERE t.state = 'failed'), COUNT(*) FILTER (WHERE t.state = 'held' AND NOT st.withdrawn),
               COUNT(*) FILTER (WHERE t.state = 'cancelled' OR (st.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
               COUNT(*) FILTER (WHERE t.state = 'completed' AND st.unfilled > 0)
        FROM sweep s JOIN sweep_trial st ON st.sweep_id = s.id JOIN trial t ON t.id = st.trial_id GROUP BY s.id)sql")
                             .all([](const Statement& row) {
                               std::vector<std::int64_t> numbers;
                               for (int i = 1; i <= 8; ++i) numbers.push_back(row.integer(i));
                               return std::pair{row.text(0), numbers};
                             });
    for (const auto& [name, numbers] : recount) {
      const TrialCounts kept = counts(name);
      ASSERT_EQ((std::vector<std::int64_t>{kept.queued, kept.leased, kept.running, kept.completed,
                                           kept.failed, kept.held, kept.cancelled, kept.unfilled}),
                numbers)
          << name << " after step " << step;
    }
  }
}

}  // namespace
}  // namespace abl::storage
