// SPDX-License-Identifier: Apache-2.0
#include "storage/due_versions.h"

#include "storage/table.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;

constexpr Retry kBeforeMend{.ended = false, .held = false, .before_mend = true};

/// A store of trials of version 1; version 2 touches those of seed 1.
class DueVersionsTest : public StoreTest {
 protected:
  DueVersions due{db};
  void mend(int newest = 2) {
    due.update(newest,
               [newest](const std::string& config) { return config == R"({"seed":1})" ? newest : 1; });
  }
};

TEST_F(DueVersionsTest, ResultsThatAMendTouchesAreMarkedAndNoOthers) {
  submit(sweep_of("s", 1, 2));  // trial 1 (seed 0), 2 (seed 1)
  complete(1, 80);
  complete(2, 81);
  EXPECT_EQ(read_table(db, "s").rows[0].cells[0].before_mend, 0u);
  mend();
  EXPECT_FALSE(trials.get(1).before_mend());
  EXPECT_TRUE(trials.get(2).before_mend());
  const Table table = read_table(db, "s");
  EXPECT_EQ(table.rows[0].cells[0].before_mend, 1u);
  EXPECT_EQ(table.rows[0].cells[0].n, 2u);
  EXPECT_THAT(table.before_mend.at(2), ElementsAre("a"));
  EXPECT_EQ(db.prepared("SELECT before_mend FROM table_cell WHERE \"column\" = 'acc'")
                .one([](const Statement& row) { return row.integer(0); }),
            1);
}

TEST_F(DueVersionsTest, EveryReleaseLooksOnce) {
  submit(sweep_of("s", 1, 1));
  int looked = 0;
  const auto look = [&](const std::string&) { return ++looked, 1; };
  due.update(2, look);
  due.update(2, look);
  EXPECT_EQ(looked, 1);
  due.update(3, look);
  EXPECT_EQ(looked, 2);
  EXPECT_EQ(due.known(), 3);
}

TEST_F(DueVersionsTest, CommandsHaveNoTrainerThatCouldBeMended) {
  auto text = sweep_of("s", 1, 2);
  for (auto& trial : text.trials) trial.command_json = "[\"true\"]", trial.result_version = 0;
  submit(text);
  mend();
  EXPECT_FALSE(trials.get(2).before_mend());
}

TEST_F(DueVersionsTest, ResultsFromBeforeAMendAreNotReused) {
  submit(sweep_of("s", 1, 2));
  complete(1, 80);
  complete(2, 81);
  mend();
  auto again = sweep_of("again", 1, 2);
  again.trials[1].result_version = 2;
  const Submitted submitted = submit(again);
  EXPECT_EQ(submitted.shared_trials, 1u);
  EXPECT_EQ(submitted.new_trials, 1u);
  EXPECT_EQ(trials.find_before_mend("h-a-1", 2)->id, 2u);
  EXPECT_FALSE(trials.find_before_mend("h-a-0", 1));
}

TEST_F(DueVersionsTest, WhatIsQueuedRunsAsItWouldTodayAndFromTheStart) {
  submit(sweep_of("s", 1, 2));
  const RunId lost = run(2);
  trials.add_checkpoint({.run = lost, .step = 10, .host = "h", .path = "/p", .sha256 = "aa"});
  mend();
  due.renew_queued(as_due);
  EXPECT_EQ(trials.get(2).identity.result_version, 1) << "a trainer of the old version is at it";
  end(lost, RunState::kLost);
  due.renew_queued(as_due);
  EXPECT_EQ(trials.get(2).identity.result_version, 2);
  EXPECT_TRUE(trials.checkpoints_of(2).empty()) << "they hold what the old one computed";
  EXPECT_EQ(trials.get(1).identity.result_version, 1);
  EXPECT_THAT(queue(), ElementsAre(1, 2));
}

TEST_F(DueVersionsTest, ARunOfTheOldVersionIsNotTakenUpAgainForATrialOfTheNew) {
  submit(sweep_of("s", 1, 2));
  const RunId silent = run(2);
  trials.end(silent, {.state = RunState::kLost, .reason = "silent", .silent = true}, now);
  mend();
  due.renew_queued(as_due);
  EXPECT_FALSE(trials.adopt(silent, now + std::chrono::seconds{30}));
  EXPECT_EQ(trials.get(2).state, TrialState::kQueued);
}

TEST_F(DueVersionsTest, WhereTheTrialIsThereAlreadyItsClaimsGoOverToIt) {
  auto text = sweep_of("s", 1, 2);
  for (auto& trial : text.trials) trial.max_retries = 0;
  submit(text);
  end(run(2), RunState::kFailed, "diverged");
  mend();
  auto other = sweep_of("other", 1, 2);
  other.trials[1].result_version = 2;
  submit(other);  // trial 3
  EXPECT_EQ(sweeps.retry(1, "", now, as_due), 1u);
  due.renew_queued(as_due);
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2));
  EXPECT_THAT(queue(), ElementsAre(1, 3));
  EXPECT_EQ(trials.get(2).state, TrialState::kCancelled);
}

TEST_F(DueVersionsTest, RetryPutsANewTrialInThePlaceOfAResultFromBefore) {
  submit(sweep_of("s", 1, 2));
  submit(sweep_of("t", 1, 2));
  complete(1, 80);
  complete(2, 81);
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kBeforeMend), 0u);
  mend();
  EXPECT_EQ(sweeps.retry(1, "", now, as_due, kBeforeMend), 1u);
  EXPECT_THAT(queue(), ElementsAre(3));
  EXPECT_EQ(trials.get(3).identity.result_version, 2);
  EXPECT_EQ(trials.get(3).identity.data_fingerprint, "f1");
  EXPECT_EQ(read_table(db, "t").rows[0].cells[0].n, 2u) << "the other sweep has what it had";
  EXPECT_EQ(sweeps.retry(2, "", now, as_due, kBeforeMend), 1u);
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2)) << "which is not trained twice";
}

/// A correction of what the document should have said, after which no other version is due.
RenewedTrial with_another_document(const TrialRecord& trial) {
  return {R"({"ratio":1,"seed":1})", "corrected-" + std::to_string(trial.seed), 1};
}

TEST_F(DueVersionsTest, AQueuedTrialWhoseDocumentWasWrongRunsTheRightOne) {
  submit(sweep_of("s", 1, 2));
  mend();
  due.renew_queued(with_another_document);
  const TrialRecord trial = trials.get(2);
  EXPECT_EQ(trial.config, R"({"ratio":1,"seed":1})");
  EXPECT_EQ(trial.identity.config_hash, "corrected-1");
  EXPECT_EQ(trial.identity.result_version, 1);
  EXPECT_FALSE(trial.before_mend()) << "it is not renewed again and again";
  EXPECT_EQ(trials.get(1).identity.config_hash, "h-a-0");
  EXPECT_THAT(queue(), ElementsAre(1, 2));
}

TEST_F(DueVersionsTest, ATrialOfTheRightDocumentThatIsThereAlreadyIsShared) {
  submit(sweep_of("s", 1, 2));
  auto right = sweep_of("right", 1, 2);
  right.trials[1].config = R"({"ratio":1,"seed":1})", right.trials[1].config_hash = "corrected-1";
  submit(right);  // trial 3
  mend();
  due.renew_queued(with_another_document);
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2));
  EXPECT_THAT(queue(), ElementsAre(1, 3));
}

TEST_F(DueVersionsTest, RetryTrainsTheRightDocumentInThePlaceOfTheWrong) {
  submit(sweep_of("s", 1, 2));
  submit(sweep_of("t", 1, 2));
  complete(1, 80);
  complete(2, 81);
  mend();
  EXPECT_EQ(sweeps.retry(1, "", now, with_another_document, kBeforeMend), 1u);
  EXPECT_EQ(trials.get(3).config, R"({"ratio":1,"seed":1})");
  EXPECT_EQ(trials.get(3).identity.config_hash, "corrected-1");
  EXPECT_FALSE(trials.get(3).before_mend());
  complete(3, 82);
  EXPECT_EQ(sweeps.retry(1, "", now, with_another_document, kBeforeMend), 0u);
  EXPECT_EQ(sweeps.retry(2, "", now, with_another_document, kBeforeMend), 1u) << "shared, not trained twice";
  EXPECT_THAT(sweeps.claimants(3), ElementsAre(1, 2));
}

}  // namespace
}  // namespace abl::storage
