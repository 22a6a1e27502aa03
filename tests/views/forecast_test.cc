// SPDX-License-Identifier: Apache-2.0
#include "views/forecast.h"

#include <fmt/format.h>

#include "storage/worker_store.h"
#include "tests/storage/fixtures.h"

namespace abl::views {
namespace {

using namespace std::chrono_literals;
using storage::RunState;
using storage::StoreTest;
using storage::sweep_of;

class ForecastTest : public StoreTest {
 protected:
  /// A worker with the data of the tests' trials.
  void connect(const std::string& name, int slots) {
    std::string list;
    for (int i = 0; i < slots; ++i)
      list += fmt::format(R"({}{{"index":{},"device":"cpu"}})", i == 0 ? "" : ",", i);
    storage::WorkerStore{db}.upsert({.name = name,
                                     .slots_json = "[" + list + "]",
                                     .data_json = R"(["cifar10"])",
                                     .weights_json = "[]",
                                     .result_version = 1,
                                     .connected = true,
                                     .last_heartbeat = now});
  }
  void take(storage::TrialId trial, Milliseconds time) {
    trials.end(run(trial), {.state = RunState::kCompleted, .took = time}, now);
  }
  std::optional<ablate::v1::Forecast> forecast(storage::SweepId sweep = 1) {
    return Forecasts{db, {sweep}, now}.of(sweep);
  }
};

TEST_F(ForecastTest, RowsThatHaveRunSayWhenASweepWillBeComplete) {
  submit(sweep_of("s", 2, 3));
  connect("alice", 2);
  take(1, 100s);
  take(2, 300s);
  const auto found = forecast();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unknown(), "");
  EXPECT_NEAR(found->seconds(), 500, 101) << "two of 100 s and two of 300 s in two slots";
  EXPECT_EQ(found->runs(), 2u);
  EXPECT_NEAR(found->at_once(), 2, 1e-6);
  EXPECT_EQ(found->complete().seconds(),
            (now + Milliseconds{static_cast<std::int64_t>(found->seconds() * 1000)}).time_since_epoch() / 1s);
}

TEST_F(ForecastTest, ARowThatHasNotRunTakesWhatWasPredictedUntilARunOfItHasCompleted) {
  submit(sweep_of("s", 2, 2));
  connect("alice", 1);
  storage::MeasuredStore{db}.predict({{"h-a", 50}, {"h-b", 100}}, 0);
  EXPECT_NEAR(forecast()->seconds(), 300, 1e-6);
  EXPECT_EQ(forecast()->predicted(), 4u);
  EXPECT_EQ(forecast()->runs(), 0u);
  take(1, 20s);
  EXPECT_NEAR(forecast()->seconds(), 220, 1e-6) << "one of row a as the other, two of row b as predicted";
  EXPECT_EQ(forecast()->predicted(), 2u);
  EXPECT_EQ(forecast()->runs(), 1u);
}

TEST_F(ForecastTest, NothingIsClaimedWhereARowHasNotRun) {
  submit(sweep_of("s", 5, 2));
  connect("alice", 2);
  take(1, 100s);
  EXPECT_EQ(forecast()->unknown(), "no trial of rows b, c, d and 1 more has completed");
  EXPECT_FALSE(forecast()->has_seconds());
  for (storage::TrialId trial = 2; trial <= 4; ++trial) take(trial, 100s);
  EXPECT_EQ(forecast()->unknown(), "no trial of row e has completed");
  take(5, 100s);
  EXPECT_NEAR(forecast()->seconds(), 300, 1) << "five in two slots";
}

TEST_F(ForecastTest, OfManyRowsThoseThatHaveRunStandForTheOthers) {
  submit(sweep_of("s", 20, 1));
  connect("alice", 1);
  for (storage::TrialId trial = 1; trial <= 10; ++trial) take(trial, trial % 2 == 0 ? 10s : 30s);
  EXPECT_NEAR(forecast()->seconds(), 200, 1);
  EXPECT_EQ(forecast()->guessed(), 10u);
}

TEST_F(ForecastTest, ARunningTrialOfARowSaysByItsRateWhatTheOthersWillTake) {
  submit(sweep_of("s", 1, 3));
  connect("alice", 1);
  const auto id = run(1);
  EXPECT_EQ(forecast()->unknown(), "no trial of row a has completed");
  metrics.append(id, {{.name = "train/loss",
                       .steps = {10, 20, 50},
                       .values = {1, 1, 1},
                       .times_ms = {now.time_since_epoch().count(), (now + 1s).time_since_epoch().count(),
                                    (now + 4s).time_since_epoch().count()}}});
  EXPECT_NEAR(forecast()->seconds(), 5 + 10 + 10, 0.1);
  EXPECT_EQ(forecast()->runs(), 0u);
}

TEST_F(ForecastTest, ARunWithoutStepsHasTakenAPartOfItsTimeAlready) {
  submit(sweep_of("s", 1, 2));
  connect("alice", 1);
  take(1, 100s);
  run(2);
  now += 60s;
  EXPECT_NEAR(forecast()->seconds(), 40, 0.1);
  now += 1h;
  EXPECT_NEAR(forecast()->seconds(), 5, 0.1) << "any time now";
}

TEST_F(ForecastTest, AnotherOwnersSweepTakesHalfOfTheSlots) {
  auto mine = sweep_of("s", 1, 9), other = sweep_of("t", 1, 9, "other");
  mine.sweep.owner = "me", other.sweep.owner = "you";
  submit(mine);
  connect("alice", 2);
  take(1, 100s);
  EXPECT_NEAR(forecast()->seconds(), 400, 1);
  submit(other);
  EXPECT_NEAR(forecast()->seconds(), 800, 1) << "for as long as nobody knows";
  take(10, 50s);
  EXPECT_NEAR(forecast()->seconds(), 600, 51) << "which is complete after 400";
}

TEST_F(ForecastTest, TrialsThatTwoSweepsWantAreTrainedOnce) {
  submit(sweep_of("s", 1, 9));
  connect("alice", 2);
  take(1, 100s);
  EXPECT_NEAR(forecast()->seconds(), 400, 1);
  submit(sweep_of("t", 1, 9));
  EXPECT_NEAR(forecast(1)->seconds(), 400, 1) << "no trial more waits than before";
  EXPECT_NEAR(forecast(2)->seconds(), 400, 1);
  submit(sweep_of("u", 2, 9));
  take(10, 50s);  // the first trial of the row that u alone has
  EXPECT_NEAR(forecast(2)->seconds(), forecast(1)->seconds(), 1);
  EXPECT_GT(forecast(3)->seconds(), 400) << "it waits for its own row, too";
}

TEST_F(ForecastTest, WithoutAWorkerThatCanTakeItNothingIsClaimed) {
  submit(sweep_of("s", 1, 2));
  take(1, 100s);
  EXPECT_EQ(forecast()->unknown(), "no worker is connected");
  storage::WorkerStore{db}.upsert({.name = "bob",
                                   .slots_json = R"([{"index":0,"device":"cpu"}])",
                                   .data_json = "[]",
                                   .weights_json = "[]",
                                   .result_version = 1,
                                   .connected = true});
  EXPECT_EQ(forecast()->unknown(), "no connected worker can take its trials");
  connect("alice", 1);
  EXPECT_TRUE(forecast()->has_seconds());
  storage::WorkerStore{db}.set_drained("alice", "new driver");
  EXPECT_EQ(forecast()->unknown(), "no connected worker can take its trials");
  storage::WorkerStore{db}.set_connected("bob", false);
  EXPECT_EQ(forecast()->unknown(), "every connected worker is drained, in quarantine or unhealthy");
  storage::WorkerStore{db}.set_connected("alice", false);
  EXPECT_EQ(forecast()->unknown(), "no worker is connected");
}

TEST_F(ForecastTest, ALeasedRunThatHasNotStartedHasAWorkerThatTakesIt) {
  submit(sweep_of("s", 1, 2));
  connect("alice", 2);
  take(1, 100s);
  lease(2);
  EXPECT_EQ(forecast()->unknown(), "");
  EXPECT_NEAR(forecast()->seconds(), 100, 1);
  storage::WorkerStore{db}.set_drained("alice", "new driver");
  EXPECT_NEAR(forecast()->seconds(), 100, 1) << "it runs there all the same";
}

TEST_F(ForecastTest, ARowWhoseTrialsHaveAllFailedHasNoneThatCompleted) {
  submit(sweep_of("s", 1, 2));
  connect("alice", 1);
  end(run(1), RunState::kFailed);
  EXPECT_EQ(forecast()->unknown(), "no trial of row a has completed");
}

TEST_F(ForecastTest, ASweepThatGoesFirstWaitsForWhatRunsUnlessItPreempts) {
  auto first = sweep_of("first", 1, 2, "other");
  first.sweep.priority = 9;
  submit(sweep_of("s", 1, 3));
  submit(first);
  connect("alice", 2);
  take(1, 100s);
  take(4, 1s);
  run(2), run(3);
  now += 20s;
  EXPECT_NEAR(forecast(1)->seconds(), 80, 0.1);
  EXPECT_NEAR(forecast(2)->seconds(), 81, 0.1) << "in the slot of a run that ends";
  sweeps.set_preempts(2, true);
  EXPECT_NEAR(forecast(2)->seconds(), 1, 0.1);
  sweeps.set_preempts(2, false);
  connect("bob", 1);
  EXPECT_NEAR(forecast(2)->seconds(), 1, 0.1) << "one slot is free";
  storage::WorkerStore{db}.set_drained("alice", "new driver");
  EXPECT_NEAR(forecast(2)->seconds(), 1, 0.1) << "also beside a worker that takes no others";
}

TEST_F(ForecastTest, APausedOrCompleteSweepHasNone) {
  submit(sweep_of("s", 1, 2));
  connect("alice", 1);
  take(1, 100s);
  sweeps.set_state(1, storage::SweepState::kPaused, now);
  EXPECT_EQ(forecast(), std::nullopt);
  sweeps.set_state(1, storage::SweepState::kActive, now);
  take(2, 100s);
  EXPECT_EQ(forecast(), std::nullopt);
}

TEST_F(ForecastTest, ASweepThatGoesFirstAndOfWhichNothingIsKnownKeepsTheOthersUnknown) {
  auto first = sweep_of("first", 1, 4, "other");
  first.sweep.priority = 1;
  submit(sweep_of("s", 1, 2));
  submit(first);
  connect("alice", 2);
  take(1, 100s);
  EXPECT_EQ(forecast()->unknown(), "it waits for sweep first: no trial of row a has completed");
}

TEST_F(ForecastTest, ALookCostsTheSameWithHundredTimesTheTrials) {
  const auto cost_of = [&](const std::string& name, int seeds) {
    submit(sweep_of(name, 20, seeds, name));
    const storage::SweepId sweep = sweeps.list(1).front().id;
    forecast(sweep);
    const auto before = db.steps();
    forecast(sweep);
    const auto steps = db.steps() - before;
    sweeps.withdraw(sweep, now);
    return steps;
  };
  const auto few = cost_of("few", 50), many = cost_of("many", 1500);
  EXPECT_LT(many, 2 * few);
}

}  // namespace
}  // namespace abl::views
