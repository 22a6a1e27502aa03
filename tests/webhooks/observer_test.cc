// SPDX-License-Identifier: Apache-2.0
#include "webhooks/observer.h"

#include "storage/removal.h"
#include "tests/storage/fixtures.h"

namespace abl::webhooks {
namespace {

using namespace std::chrono_literals;
using storage::Database;
using storage::RunState;
using storage::StoreTest;
using storage::sweep_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class ObserverTest : public StoreTest {
 protected:
  ObserverTest() { submit(sweep_of("old", 1, 1, "old")); }

  Database reader{folder / "results.db", Database::Mode::kReadOnly};
  views::TableCache tables{folder / "results.db"};
  Webhook webhook{.name = "lab",
                  .url = {},
                  .events = {Event::kSweepComplete, Event::kRowFailed, Event::kCellSignificant},
                  .sweeps = {}};
  Told told = told_nothing(reader, now);

  /// What has happened since it was last asked, "event: text" each.
  std::vector<std::string> news() {
    Round round = look(reader, tables, webhook, told);
    told = std::move(round.told);
    std::vector<std::string> said;
    last.clear();
    for (Happening& one : round.happenings) {
      said.push_back(std::string{name_of(one.event)} + ": " + one.text);
      last.push_back(std::move(one));
    }
    return said;
  }
  void fail(storage::TrialId trial, const std::string& reason) {
    while (trials.get(trial).state != storage::TrialState::kFailed) {
      end(run(trial), RunState::kFailed, reason);
      now += 2min;
    }
  }
  std::vector<Happening> last;
};

TEST_F(ObserverTest, ASweepIsCompleteOnceItsLastTrialHasEnded) {
  submit(sweep_of("s", 1, 2));
  EXPECT_THAT(news(), IsEmpty());
  complete(2, 80);
  EXPECT_THAT(news(), IsEmpty());
  complete(3, 81);
  EXPECT_THAT(news(), ElementsAre("sweep-complete: s is complete: 2 of 2 trials completed"));
  EXPECT_EQ(last.at(0).page, "/sweeps/s");
  EXPECT_EQ(last.at(0).details["trials"]["completed"], 2);
  EXPECT_THAT(news(), IsEmpty());
}

TEST_F(ObserverTest, OfTwoRoundsThatSeeTheSameEndOneTells) {
  submit(sweep_of("s", 1, 2));
  complete(2, 80);
  const Told before = told;
  complete(3, 81);
  EXPECT_THAT(news(), SizeIs(1));
  const std::string id = last.at(0).id;
  const auto complete_with = told.complete;
  told = before;
  told.complete = complete_with;
  EXPECT_THAT(news(), IsEmpty());
  told = before;  // a scheduler that was killed before it could note that
  EXPECT_THAT(news(), SizeIs(1));
  EXPECT_EQ(last.at(0).id, id) << "receivers know it by its id";
}

TEST_F(ObserverTest, AFailedTrialIsToldWithItsReasonUnlessItWasRetriedMeanwhile) {
  submit(sweep_of("s", 2, 1));
  fail(2, "out of memory\nand much more");
  complete(3, 80);
  EXPECT_THAT(news(), ElementsAre("row-failed: s: a trial failed\na, seed 0: out of memory",
                                  "sweep-complete: s is complete: 1 of 2 trials completed, 1 failed"));
  EXPECT_THAT(last.at(0).page, testing::StartsWith("/runs/"));
  EXPECT_EQ(last.at(0).details["trials"][0]["row"], "a");
  submit(sweep_of("t", 1, 1, "t"));
  fail(4, "bad luck");
  sweeps.retry(sweeps.find("t")->id, "", now, {});
  EXPECT_THAT(news(), IsEmpty());
}

TEST_F(ObserverTest, ManyFailuresAreOneMessageThatNamesAFew) {
  submit(sweep_of("s", 26, 1));
  for (storage::TrialId trial = 2; trial < 28; ++trial) fail(trial, "no luck");
  const auto said = news();
  ASSERT_THAT(said, SizeIs(2));
  EXPECT_THAT(said[0], AllOf(HasSubstr("s: 26 trials failed"), HasSubstr("and 6 more")));
  EXPECT_EQ(last.at(0).details["failed"], 26);
  EXPECT_THAT(last.at(0).details["trials"], SizeIs(kNamed));
  EXPECT_EQ(last.at(0).page, "/sweeps/s/failures");
}

TEST_F(ObserverTest, ADifferenceIsToldOnceItIsSignificantAndOnlyOnce) {
  submit(sweep_of("s", 2, 4));
  const double values[][4] = {{78.5, 78.6, 78.4, 78.5}, {80.1, 80.0, 80.2, 80.1}};
  storage::TrialId trial = 2;
  std::vector<std::string> said;
  for (int seed = 0; seed < 4; ++seed)
    for (const auto& row : values) {
      complete(trial++, row[seed]);
      for (const auto& one : news())
        if (one.starts_with("cell-significant")) said.push_back(one);
    }
  ASSERT_THAT(said, SizeIs(1)) << "not at a look in between: the table's test allows for one alone";
  EXPECT_EQ(last.at(0).details["cells"][0]["n"], 4);
  EXPECT_THAT(said[0], AllOf(HasSubstr("s: a difference is significant\nacc of b: "),
                             HasSubstr("better than a"), HasSubstr("Welch's t-test")));
}

TEST_F(ObserverTest, WhatWasSignificantBeforeTheWebhookBeganIsNothingNew) {
  submit(sweep_of("s", 2, 3));
  const double values[][3] = {{78.5, 78.6, 78.4}, {80.1, 80.0, 80.2}};
  storage::TrialId trial = 2;
  for (int seed = 0; seed < 3; ++seed)
    for (const auto& row : values)
      if (trial < 7) complete(trial++, row[seed]);
  now += 1h;
  told = told_nothing(reader, now);
  complete(7, 80.2);
  EXPECT_THAT(news(), ElementsAre(HasSubstr("sweep-complete")));
  EXPECT_THAT(told.cells, SizeIs(1));
}

TEST_F(ObserverTest, OnlyWhatIsWantedIsTold) {
  webhook.events = {Event::kRowFailed};
  webhook.sweeps = {"s*"};
  submit(sweep_of("s", 1, 1));
  submit(sweep_of("t", 1, 1, "t"));
  fail(2, "x");
  fail(3, "x");
  EXPECT_THAT(news(), ElementsAre(HasSubstr("row-failed: s:")));
}

TEST_F(ObserverTest, ACancelledSweepIsNotComplete) {
  submit(sweep_of("s", 1, 2));
  complete(2, 80);
  sweeps.set_state(sweeps.find("s")->id, storage::SweepState::kCancelled, now);
  db.execute("UPDATE trial SET state = 'cancelled' WHERE id = 3");
  EXPECT_THAT(news(), IsEmpty());
}

TEST_F(ObserverTest, NoStepIsMissedWhereTheNewestWereOfASweepThatIsRemoved) {
  submit(sweep_of("s", 1, 1));
  complete(2, 80);
  EXPECT_THAT(news(), SizeIs(1));
  storage::Removal removal{db};
  removal.begin("s", now);
  while (removal.step(now) == storage::Removal::Step::kMore) {
  }
  submit(sweep_of("t", 1, 1, "t"));
  complete(3, 80);
  EXPECT_THAT(news(), ElementsAre(HasSubstr("t is complete")));
  EXPECT_THAT(told.complete, SizeIs(2));
  forget_removed(reader, told);
  EXPECT_THAT(told.complete, SizeIs(1));
}

TEST_F(ObserverTest, ASweepWhoseLastTrialIsCancelledByHandIsComplete) {
  const auto id = sweeps.find("old")->id;
  submit(sweep_of("s", 1, 2));
  complete(2, 80);
  EXPECT_THAT(news(), IsEmpty());
  EXPECT_NE(sweeps.find("s")->id, id);
  sweeps.withdraw(sweeps.find("s")->id, "a", 1, now);
  EXPECT_THAT(news(), ElementsAre("sweep-complete: s is complete: 1 of 2 trials completed, 1 cancelled"));
}

TEST_F(ObserverTest, HeldTrialsAreNotCalledFailed) {
  submit(sweep_of("s", 3, 1));
  fail(2, "no luck");
  db.execute("UPDATE trial SET state = 'held', reason = 'waits for its source' WHERE id IN (3, 4)");
  EXPECT_THAT(news(),
              testing::Contains(testing::StartsWith("row-failed: s: a trial failed, 2 trials are held\n")));
  EXPECT_EQ(last.at(0).details["failed"], 1);
  EXPECT_EQ(last.at(0).details["held"], 2);
  EXPECT_FALSE(last.at(0).details["trials"][1].contains("run")) << "it has not run";
  EXPECT_THAT(last, SizeIs(1)) << "what is held is not complete";
}

TEST_F(ObserverTest, ARoundThatWasBegunIsTheSameAfterARestart) {
  submit(sweep_of("s", 2, 1));
  fail(2, "no luck");
  const Round round = look(reader, tables, webhook, told);
  ASSERT_THAT(round.happenings, SizeIs(1));
  told.until = round.told.upto;  // and the program ends
  fail(3, "no luck either");
  EXPECT_THAT(news(),
              ElementsAre("row-failed: s: a trial failed\na, seed 0: no luck", HasSubstr("sweep-complete")));
  EXPECT_EQ(last.at(0).id, round.happenings.at(0).id);
  EXPECT_EQ(told.until, 0);
  EXPECT_THAT(news(), ElementsAre("row-failed: s: a trial failed\nb, seed 0: no luck either"));
}

TEST_F(ObserverTest, ARoundWhoseStepsAreForgottenEnds) {
  told.until = told.upto + 5;
  const Round round = look(reader, tables, webhook, told);
  EXPECT_EQ(round.told.upto, told.until);
  EXPECT_EQ(round.told.until, 0);
}

TEST_F(ObserverTest, WhatTheStoreHasForgottenIsCounted) {
  submit(sweep_of("s", 1, 3));
  complete(2, 80);
  news();
  complete(3, 81);
  complete(4, 81);
  db.execute("DELETE FROM transition WHERE id < (SELECT MAX(id) FROM transition)");
  const Round round = look(reader, tables, webhook, told);
  EXPECT_EQ(round.lost, 5);
  EXPECT_THAT(round.happenings, SizeIs(1)) << "the sweep is complete all the same";
}

}  // namespace
}  // namespace abl::webhooks
