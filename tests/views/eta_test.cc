// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <gtest/gtest.h>

namespace abl::views {
namespace {

using storage::Pace;
using storage::TrialState;

Pace pace(storage::TrialId trial, TrialState state, std::uint32_t step = 0, double rate = 0,
          std::uint32_t total = 100) {
  return {.trial = trial, .state = state, .step = step, .total_steps = total, .steps_per_second = rate};
}

TEST(EtaTest, RunningTrialTakesItsRemainingStepsAtItsRate) {
  EXPECT_EQ(trial_eta(pace(1, TrialState::kRunning, 40, 2)), 30.0);
  EXPECT_EQ(trial_eta(pace(1, TrialState::kRunning, 120, 2)), 0.0) << "never negative";
  EXPECT_EQ(trial_eta(pace(1, TrialState::kRunning, 0, 0)), std::nullopt);
  EXPECT_EQ(trial_eta(pace(1, TrialState::kRunning, 40, 2, 0)), std::nullopt) << "its length is not known";
  EXPECT_EQ(trial_eta(pace(1, TrialState::kQueued, 40, 2)), std::nullopt);
}

TEST(EtaTest, WaitingTrialsTakeTheTypicalTimeSharedAmongThoseThatRun) {
  // 50 s a trial; two run with 10 s and 40 s to go, four wait: (10 + 40 + 4 · 50) / 2
  const std::vector<Pace> paces{
      pace(1, TrialState::kCompleted, 100, 2), pace(2, TrialState::kRunning, 80, 2),
      pace(3, TrialState::kRunning, 20, 2),    pace(4, TrialState::kQueued, 0, 0, 0),
      pace(5, TrialState::kQueued, 0, 0, 0),   pace(6, TrialState::kQueued, 0, 0, 0),
      pace(7, TrialState::kQueued, 0, 0, 0)};
  EXPECT_EQ(sweep_eta(paces), 125.0);
}

TEST(EtaTest, SweepTakesAtLeastAsLongAsItsSlowestTrial) {
  EXPECT_EQ(sweep_eta({pace(1, TrialState::kRunning, 90, 1), pace(2, TrialState::kRunning, 10, 1)}), 90.0);
}

TEST(EtaTest, TrialSharedByTwoRowsCountsOnce) {
  EXPECT_EQ(sweep_eta({pace(1, TrialState::kRunning, 0, 1), pace(1, TrialState::kRunning, 0, 1)}), 100.0);
}

TEST(EtaTest, UnknownWhereNothingRunsOrNoRateWasSeen) {
  EXPECT_EQ(sweep_eta({}), std::nullopt);
  EXPECT_EQ(sweep_eta({pace(1, TrialState::kCompleted, 100, 2), pace(2, TrialState::kQueued)}), std::nullopt);
  EXPECT_EQ(sweep_eta({pace(1, TrialState::kRunning, 0, 0)}), std::nullopt);
  EXPECT_EQ(sweep_eta({pace(1, TrialState::kCompleted, 100, 2)}), std::nullopt) << "finished";
}

}  // namespace
}  // namespace abl::views
