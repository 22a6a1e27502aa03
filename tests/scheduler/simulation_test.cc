// SPDX-License-Identifier: Apache-2.0
// What the policies come to over days, for fleets of hundreds of GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "tests/scheduler/simulator.h"

namespace abl::scheduler {
namespace {

using namespace std::chrono_literals;
constexpr double kLongestTrial = 3600;

TEST(Simulation, ASweepOfFiveBesideOneOfTenThousandStartsWithinATrialsLength) {
  Simulator simulator{25, 4};
  simulator.submit({.owner = "alice", .lengths = lengths_of(10'000)});
  simulator.submit({.owner = "alice", .arrives = 10h, .lengths = lengths_of(5, 2)});
  simulator.submit({.owner = "bob", .arrives = 20h, .lengths = lengths_of(5, 3)});
  simulator.run();
  for (const std::size_t small : {1u, 2u})
    EXPECT_LE(std::ranges::max(simulator.outcome(small).waits), kLongestTrial);
}

TEST(Simulation, EqualOwnersGetEqualSharesHoweverManySweepsTheyHave) {
  Simulator simulator{25, 4};
  for (int i = 0; i < 6; ++i) simulator.submit({.owner = "alice", .lengths = lengths_of(500, 10u + i)});
  simulator.submit({.owner = "bob", .lengths = lengths_of(3000, 2)});
  simulator.submit({.owner = "carol", .lengths = lengths_of(3000, 3)});
  simulator.run();
  for (std::int64_t hour = 1; hour < 20; ++hour) {  // all of them have trials waiting then
    std::vector<double> shares(3);
    for (std::size_t sweep = 0; sweep < 8; ++sweep)
      shares[sweep < 6 ? 0 : sweep - 5] += simulator.outcome(sweep).by_hour.at(hour);
    EXPECT_GE(jain(shares), 0.95) << "in hour " << hour;
  }
}

TEST(Simulation, NoGpuIsIdleWhileSomethingWaits) {
  Simulator simulator{50, 4};
  for (int i = 0; i < 20; ++i)
    simulator.submit(
        {.owner = fmt::format("owner {}", i % 4), .priority = i % 3, .lengths = lengths_of(300, 20u + i)});
  simulator.run();
  EXPECT_LE(simulator.makespan(), 1.1 * simulator.lower_bound());
}

TEST(Simulation, ATrialOfFourGpusIsNotStarvedByAFloodOfTrialsOfOne) {
  Simulator simulator{10, 4};
  simulator.submit({.lengths = lengths_of(4000)});
  simulator.submit({.gpus = 4, .arrives = 5h, .lengths = lengths_of(3, 2)});
  simulator.run();
  // its worker is cleared by its runs' ends: at most one trial's length each, one after the other
  EXPECT_LE(std::ranges::max(simulator.outcome(1).waits), 3 * kLongestTrial);
  EXPECT_LE(simulator.makespan(), 1.1 * simulator.lower_bound()) << "and hardly anything is left idle for it";
}

TEST(Simulation, RunsThatGiveWayLoseNoWorkAndAnUrgentSweepStartsAtOnce) {
  Simulator simulator{10, 4};
  simulator.submit({.lengths = lengths_of(400)});
  simulator.submit({.priority = 10, .preempts = true, .arrives = 2h, .lengths = lengths_of(20, 2)});
  simulator.run();
  EXPECT_LE(std::ranges::max(simulator.outcome(1).waits), 10);
  EXPECT_EQ(simulator.preempted(), 20u) << "as many as it needs";
  EXPECT_LE(simulator.makespan(), 1.1 * simulator.lower_bound());
}

TEST(Simulation, LostRunsAreRunAgainAndNothingIsForgotten) {
  Simulator simulator{20, 4};
  simulator.lose(0.2);
  simulator.submit({.lengths = lengths_of(2000)});
  simulator.run();
  EXPECT_EQ(simulator.outcome(0).waits.size(), 2000u);
  EXPECT_GT(simulator.lost(), 300u);
  EXPECT_LE(simulator.makespan(), 1.1 * simulator.lower_bound()) << "they go on from their checkpoints";
}

TEST(Simulation, AWorkerOnWhichAllFailsCostsFewTrialsAndNobodyElseIsBlamed) {
  Simulator simulator{100, 4};
  simulator.break_worker(7);
  simulator.submit({.lengths = lengths_of(8000), .retries = 1});
  simulator.run();
  const auto& outcome = simulator.outcome(0);
  EXPECT_EQ(outcome.completed + outcome.failed, 8000u) << "nothing is held for it";
  EXPECT_LE(outcome.failed, 20u);
  EXPECT_GE(simulator.quarantined(), 1u);
  EXPECT_LE(simulator.quarantined(), 20u) << "it is looked at ever less often";
  EXPECT_LE(simulator.makespan(), 1.1 * simulator.lower_bound());
}

TEST(Simulation, ALevelThatFailsIsHeldAfterAFewTrialsAndNoWorkerIsBlamed) {
  Simulator simulator{100, 4};
  simulator.submit({.lengths = lengths_of(5000), .levels = 10, .failing_level = 3});
  simulator.submit({.owner = "bob", .lengths = lengths_of(2000, 2)});
  simulator.run();
  EXPECT_EQ(simulator.outcome(0).completed, 4500u);
  EXPECT_EQ(simulator.outcome(0).failed + simulator.outcome(0).held, 500u);
  EXPECT_LE(simulator.outcome(0).failed, 100u) << "no more than ran before another level had completed";
  EXPECT_EQ(simulator.outcome(1).completed, 2000u);
  EXPECT_EQ(simulator.quarantined(), 0u);
}

TEST(Simulation, OfASweepThatAlwaysFailsOnlyAFewTrialsRun) {
  Simulator simulator{100, 4};
  simulator.submit({.lengths = lengths_of(5000), .failing_level = 0});
  simulator.run();
  EXPECT_LE(simulator.outcome(0).failed, 2 * kCanaryFailures);
  EXPECT_GE(simulator.outcome(0).held, 5000u - 2 * kCanaryFailures);
  EXPECT_EQ(simulator.quarantined(), 0u);
}

/// The error of the forecasts for each sweep, relative to its true end, at these parts of all trials.
std::vector<double> errors_of_forecasts(Simulator& simulator, std::size_t sweeps, std::size_t trials,
                                        const std::vector<double>& parts) {
  std::vector<std::vector<double>> said;
  for (const double part : parts)
    simulator.when_completed(static_cast<std::size_t>(part * static_cast<double>(trials)), [&] {
      auto& ends = said.emplace_back();
      for (const auto& completion : simulator.forecast())
        ends.push_back(simulator.now() + completion.seconds.value_or(1e9));
    });
  simulator.run();
  std::vector<double> errors;
  for (std::size_t i = 0; i < said.size(); ++i)
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
      const double end = simulator.outcome(sweep).end;
      errors.push_back(said[i][sweep] / end - 1);
      std::cout << fmt::format("at {:.0f} %: sweep {} ends at {:.1f} h, {:+.1f} % off\n", parts[i] * 100,
                               sweep, end / 3600, errors.back() * 100);
    }
  return errors;
}

TEST(Simulation, TheEndOfASweepOfEqualTrialsIsForeseenAtATenthOfIt) {
  Simulator simulator{25, 4};
  simulator.submit({.lengths = std::vector<Simulator::Seconds>(1030, 30min)});
  EXPECT_THAT(errors_of_forecasts(simulator, 1, 1030, {0.1, 0.5}),
              testing::Each(testing::DoubleNear(0, 0.05)));
}

TEST(Simulation, TheEndsOfSweepsOfTwoOwnersAreForeseenBesideEachOther) {
  Simulator simulator{25, 4};
  simulator.submit({.owner = "alice", .lengths = std::vector<Simulator::Seconds>(1500, 20min)});
  simulator.submit({.owner = "bob", .lengths = std::vector<Simulator::Seconds>(500, 40min)});
  simulator.submit({.owner = "bob", .weight = 3, .lengths = std::vector<Simulator::Seconds>(500, 10min)});
  EXPECT_THAT(errors_of_forecasts(simulator, 3, 2500, {0.1, 0.3}),
              testing::Each(testing::DoubleNear(0, 0.2)));
}

TEST(Simulation, TheEndOfASweepOfTrialsOfOneToSixPartsIsForeseen) {
  Simulator simulator{25, 4};
  simulator.submit({.lengths = lengths_of(2000)});
  EXPECT_THAT(errors_of_forecasts(simulator, 1, 2000, {0.1, 0.5, 0.9}),
              testing::Each(testing::DoubleNear(0, 0.2)));
}

}  // namespace
}  // namespace abl::scheduler
