// SPDX-License-Identifier: Apache-2.0
// What the policies come to over days, for fleets of hundreds of GPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace abl::scheduler
