// SPDX-License-Identifier: Apache-2.0
#include "storage/breaker_store.h"

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class BreakerStoreTest : public StoreTest {
 protected:
  /// Rows that set groups to 1, 8, 1, 8 …, and the learning rate to one value for all.
  /// `trials`: sweeps that say the same here have the same ones.
  SweepId grouped(const std::string& name, int rows, int seeds, const std::string& trials = {}) {
    SweepText text = sweep_of(name, rows, seeds, trials.empty() ? name : trials);
    text.sweep.breaker = true;
    for (std::size_t i = 0; i < text.sweep.rows.size(); ++i) {
      auto& row = text.sweep.rows[i];
      row.levels = {{"model.groups", i % 2 == 0 ? "1" : "8"}, {"recipe.lr", "0.1"}};
      row.set_json = R"({"model.groups":")" + row.levels.at("model.groups") + R"(","recipe.lr":"0.1"})";
    }
    submit(text);
    return sweeps.get(name).id;
  }
  void end(TrialId trial, TrialState state, const std::string& reason = "boom") {
    db.prepared("UPDATE trial SET state = :state, reason = :reason WHERE id = :trial")
        .bind(":state", to_text(state))
        .bind(":reason", reason)
        .bind(":trial", trial)
        .run();
  }
  std::vector<std::string> levels(SweepId sweep) {
    return db.prepared("SELECT factor || '=' || level FROM sweep_level WHERE sweep_id = :sweep")
        .bind(":sweep", sweep)
        .all([](const Statement& row) { return row.text(0); });
  }
  BreakerStore breaker{db};
};

TEST_F(BreakerStoreTest, CountsLevelsThatThreeTrialsHaveAndNotAll) {
  EXPECT_THAT(levels(grouped("pairs", 2, 2)), IsEmpty());
  EXPECT_THAT(levels(grouped("s", 4, 2)), UnorderedElementsAre("model.groups=1", "model.groups=8"));
  EXPECT_THAT(levels(grouped("seeds", 2, 3)),
              UnorderedElementsAre("model.groups=1", "model.groups=8", "=a", "=b"));
}

TEST_F(BreakerStoreTest, AFailureCountsForWhatItsTrialSharesAndSaysOnHowManyWorkers) {
  grouped("s", 4, 2);
  end(2, TrialState::kFailed);
  auto counts = breaker.failed(2, "one");
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].of.level, "8");
  EXPECT_EQ(counts[0].failures, 1u);
  EXPECT_FALSE(counts[0].several_workers);
  EXPECT_EQ(counts[1].of, SweepLevel{.sweep = counts[0].of.sweep}) << "the whole sweep is the last";
  end(4, TrialState::kFailed);
  counts = breaker.failed(4, "two");
  EXPECT_EQ(counts[0].failures, 2u);
  EXPECT_EQ(counts[0].sweep_failures, 2u);
  EXPECT_TRUE(counts[0].several_workers);
}

TEST_F(BreakerStoreTest, WhatIsHeldGoesOnWhenOneOfItCompletes) {
  const SweepId sweep = grouped("s", 4, 2);
  end(2, TrialState::kFailed, "shape");
  breaker.failed(2, "one");
  const SweepLevel eight{sweep, "model.groups", "8"};
  EXPECT_EQ(breaker.begin_hold(eight, "all cells with groups=8", 1),
            "all cells with groups=8 fail: shape (1 of 1)");
  EXPECT_FALSE(breaker.hold(eight, {}, now));
  EXPECT_EQ(sweeps.get("s").trials.held, 3u);
  EXPECT_THAT(breaker.held(), ElementsAre(eight));
  EXPECT_THAT(breaker.failed(4, "one"), IsEmpty()) << "it is held already";
  end(4, TrialState::kCompleted, "");
  breaker.completed(4, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 0u);
  EXPECT_THAT(sweeps.get("s").holds, IsEmpty());
}

TEST_F(BreakerStoreTest, OneThatComesBackIsHeldAloneAndNotWhileAnotherSweepWantsIt) {
  const SweepId sweep = grouped("s", 4, 2, "both"), other = grouped("other", 4, 2, "both");
  const SweepLevel eight{sweep, "model.groups", "8"}, there{other, "model.groups", "8"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  EXPECT_FALSE(breaker.hold_again(2, now));
  breaker.begin_hold(there, "all of the other with groups=8", 3);
  EXPECT_FALSE(breaker.hold_again(1, now)) << "of another level";
  EXPECT_TRUE(breaker.hold_again(2, now));
  EXPECT_EQ(sweeps.get("s").trials.held, 1u);
  EXPECT_FALSE(breaker.hold_again(2, now)) << "it is";
}

TEST_F(BreakerStoreTest, WhatIsHeldForASecondReasonStaysHeldForIt) {
  const SweepId sweep = grouped("s", 4, 3);  // rows a to d: a and c with groups=1, b and d with 8
  const SweepLevel eight{sweep, "model.groups", "8"}, d{sweep, "", "d"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  const std::string why = breaker.begin_hold(d, "all trials of row d", 3);
  EXPECT_EQ(why, "") << "its trials are held already";
  db.execute("UPDATE sweep_level SET held = 'd fails' WHERE level = 'd'");
  end(2, TrialState::kCompleted, "");  // of row b
  breaker.completed(2, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 3u);
  EXPECT_EQ(TrialStore{db}.get(4).reason, "d fails");
}

TEST_F(BreakerStoreTest, ASweepThatBecomesActiveWantsWhatAnotherHolds) {
  const SweepId first = grouped("s", 4, 2, "both");
  const SweepLevel eight{first, "model.groups", "8"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  db.execute("UPDATE trial SET reason = 'held: 3 attempts brought workers down' WHERE id = 4");
  EXPECT_EQ(sweeps.get("s").trials.held, 4u);
  grouped("other", 4, 2, "both");
  EXPECT_EQ(sweeps.get("s").trials.held, 1u) << "what may bring workers down stays held";

  const SweepId third = grouped("third", 4, 2, "third"), paused = grouped("paused", 4, 2, "third");
  sweeps.set_state(paused, SweepState::kPaused, now);
  const SweepLevel there{third, "model.groups", "8"};
  breaker.begin_hold(there, "all cells with groups=8", 3);
  breaker.hold(there, {}, now);
  EXPECT_EQ(sweeps.get("paused").trials.held, 4u);
  sweeps.set_state(paused, SweepState::kActive, now);
  breaker.want(paused, now);
  EXPECT_EQ(sweeps.get("paused").trials.held, 0u);
  EXPECT_EQ(sweeps.get("paused").trials.queued, 8u);
}

TEST_F(BreakerStoreTest, ToRetryARowLeavesTheOthersOfItsLevelsHeldUntilOneCompletes) {
  const SweepId sweep = grouped("s", 4, 4);
  const SweepLevel eight{sweep, "model.groups", "8"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 8u);
  EXPECT_EQ(sweeps.retry(sweep, "b", now, {}, {.held = true}), 4u);
  EXPECT_EQ(sweeps.get("s").trials.held, 4u);
  EXPECT_THAT(sweeps.get("s").holds, SizeIs(1)) << "it says why the others wait";
  end(2, TrialState::kCompleted, "");
  breaker.completed(2, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 0u);
  EXPECT_THAT(sweeps.get("s").holds, IsEmpty());
}

TEST_F(BreakerStoreTest, SaysTwentyHoldsAndHowManyMore) {
  const SweepId sweep = grouped("s", 26, 4);
  for (char row = 'a'; row <= 'z'; ++row) {
    const std::string id(1, row);
    EXPECT_NE(breaker.begin_hold({sweep, "", id}, "all trials of row " + id, 3), "");
  }
  for (const auto& holds : {sweeps.get("s").holds, sweeps.holds(sweep)}) {
    ASSERT_EQ(holds.size(), 21u);
    EXPECT_EQ(holds[19], "all trials of row t fail: no reason given (3 of 3)");
    EXPECT_EQ(holds[20], "and 6 more fail");
  }
}

TEST_F(BreakerStoreTest, AnEndCostsTheSameInALongSweep) {
  const auto cost_of = [&](int seeds) {
    const SweepId sweep = grouped("s" + std::to_string(seeds), 20, seeds);
    const auto first = db.prepared("SELECT MIN(trial_id) FROM sweep_trial WHERE sweep_id = :sweep")
                           .bind(":sweep", sweep)
                           .one([](const Statement& row) { return static_cast<TrialId>(row.integer(0)); })
                           .value();
    end(first + 1, TrialState::kFailed);
    end(first, TrialState::kCompleted, "");
    const auto before = db.steps();
    breaker.failed(first + 1, "one");
    breaker.completed(first, now);
    db.execute("UPDATE sweep_level SET held = 'c fails' WHERE factor = '' AND level = 'c'");
    breaker.hold_again(first + 2, now);
    return db.steps() - before;
  };
  const auto few = cost_of(10), many = cost_of(1000);
  EXPECT_LT(many, few + few / 5);
}

TEST_F(BreakerStoreTest, ToHoldARowCostsWhatTheRowHas) {
  const auto cost_of = [&](int rows) {
    const SweepLevel row{grouped("s" + std::to_string(rows), rows, 40), "", "c"};
    const auto before = db.steps();
    EXPECT_NE(breaker.begin_hold(row, "all trials of row c", 3), "");
    breaker.leased(row);
    breaker.hold(row, {}, now);
    return db.steps() - before;
  };
  const auto few = cost_of(5), many = cost_of(26);
  EXPECT_LT(many, few + few / 5);
}

TEST_F(BreakerStoreTest, ToHoldALevelOfAFactorCostsWhatItsRowsHave) {
  const auto cost_of = [&](int seeds) {
    const SweepLevel eight{grouped("s" + std::to_string(seeds), 26, seeds), "model.groups", "8"};
    const auto before = db.steps();
    EXPECT_NE(breaker.begin_hold(eight, "all cells with groups=8", 3), "");
    breaker.hold(eight, {}, now);
    breaker.begin_hold(eight, "nothing is left of them", 3);
    return db.steps() - before;
  };
  const auto few = cost_of(4), many = cost_of(40);
  EXPECT_LT(many, 11 * few);
}

TEST_F(BreakerStoreTest, ARowThatIsRetriedStaysInTheQueueUntilItHasFailedAgain) {
  const SweepId sweep = grouped("s", 4, 4);
  const SweepLevel eight{sweep, "model.groups", "8"}, b{sweep, "", "b"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  sweeps.retry(sweep, "b", now, {}, {.held = true});
  breaker.hold(eight, {}, now);  // as when the scheduler starts again
  EXPECT_EQ(sweeps.get("s").trials.held, 4u);
  EXPECT_FALSE(breaker.hold_again(2, now)) << "as when its worker was lost";
  EXPECT_NE(breaker.begin_hold(b, "all trials of row b", 3), "");
  breaker.hold(b, {}, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 8u);
  sweeps.retry(sweep, "", now, {}, {.held = true});
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 8u);
}

TEST_F(BreakerStoreTest, TrialsOfTwoSweepsAreHeldWhereBothHoldThem) {
  const SweepId first = grouped("s", 4, 4, "both"), other = grouped("other", 4, 4, "both");
  const SweepLevel eight{first, "model.groups", "8"}, there{other, "model.groups", "8"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 0u) << "the other wants them";
  breaker.begin_hold(there, "all cells with groups=8", 3);
  breaker.hold(there, {}, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 8u);
}

TEST_F(BreakerStoreTest, WhatASweepHoldsIsHeldWhenTheOtherThatWantedItIsNotActiveAnyMore) {
  const SweepId first = grouped("s", 4, 4, "both"), other = grouped("other", 4, 4, "both");
  const SweepLevel eight{first, "model.groups", "8"};
  breaker.begin_hold(eight, "all cells with groups=8", 3);
  breaker.hold(eight, {}, now);
  sweeps.withdraw(other, now);
  EXPECT_EQ(sweeps.get("s").trials.held, 8u);
  EXPECT_EQ(sweeps.get("s").trials.queued, 8u);
}

TEST_F(BreakerStoreTest, ARowWithMoreSeedsThanAPageIsHeldPageByPage) {
  const SweepLevel a{grouped("s", 3, 2500), "", "a"};
  breaker.begin_hold(a, "all trials of row a", 3);
  const auto next = breaker.hold(a, {}, now);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, (HoldFrom{0, 2000}));
  EXPECT_FALSE(breaker.hold(a, *next, now));
  EXPECT_EQ(sweeps.get("s").trials.held, 2500u);
}

}  // namespace
}  // namespace abl::storage
