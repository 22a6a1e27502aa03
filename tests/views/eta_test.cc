// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace abl::views {
namespace {

using storage::Pace;
using storage::TrialState;
using testing::DoubleNear;
using testing::Optional;

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

TEST(Makespan, TrialsFollowEachOtherInThePlacesThatBecomeFree) {
  EXPECT_EQ(makespan({.waiting = {{5, 100}}}, 4), 200) << "not 125: a trial has one place";
  EXPECT_EQ(makespan({.waiting = {{4, 50}}, .running = {10, 40}}, 2), 140) << "10 50 50 and 40 50 50";
  EXPECT_EQ(makespan({.waiting = {{1, 10}}, .running = {90, 10}}, 2), 90) << "the slowest";
  EXPECT_EQ(makespan({.waiting = {{1, 10}, {1, 30}}}, 1), 40) << "rows differ";
  EXPECT_EQ(makespan({.waiting = {{2, 10}}, .running = {30, 20, 10}}, 1), 50)
      << "two that end are not followed";
  EXPECT_NEAR(makespan({.waiting = {{8, 10}}}, 2.5), 34.3, 0.1) << "between 40 and 30";
  EXPECT_EQ(makespan({.waiting = {{2, 10}}}, 0.5), 40);
  EXPECT_NEAR(makespan({.waiting = {{1e6, 10}}}, 100), 1e5, 10) << "without a look at each";
}

std::vector<double> seconds_of(const std::vector<Remaining>& sweeps, double slots) {
  std::vector<double> seconds;
  for (const Completion& completion : completions(sweeps, slots))
    seconds.push_back(completion.seconds.value_or(-1));
  return seconds;
}

TEST(Completions, ASweepAloneHasAllPlacesThatCanTakeIt) {
  EXPECT_THAT(seconds_of({{.waiting = {{8, 100}}, .places = 4}}, 10), testing::ElementsAre(200));
}

TEST(Completions, EqualOwnersShareTheSlotsAndWhoIsCompleteLeavesHisToTheOthers) {
  const auto sweeps = std::vector<Remaining>{{.waiting = {{20, 100}}, .places = 4, .owner = "alice"},
                                             {.waiting = {{10, 100}}, .places = 4, .owner = "bob"}};
  EXPECT_THAT(seconds_of(sweeps, 4), testing::ElementsAre(DoubleNear(750, 75), DoubleNear(500, 1)));
}

TEST(Completions, AnOwnersSweepsShareByWeight) {
  const auto seconds = seconds_of(
      {{.waiting = {{300, 10}}, .places = 4}, {.waiting = {{100, 10}}, .places = 4, .weight = 1.0 / 3}}, 4);
  EXPECT_NEAR(seconds[0], 1000, 20);
  EXPECT_NEAR(seconds[1], 1000, 20) << "three of four slots for three times the work";
}

TEST(Completions, AHigherPriorityGoesFirst) {
  const auto seconds = seconds_of(
      {{.waiting = {{8, 100}}, .places = 4}, {.waiting = {{8, 100}}, .places = 4, .priority = 1}}, 4);
  EXPECT_NEAR(seconds[1], 200, 1);
  EXPECT_NEAR(seconds[0], 400, 1);
}

TEST(Completions, WhatASweepMayNotUseTheOthersGet) {
  const auto seconds = seconds_of(
      {{.waiting = {{30, 10}}, .places = 1}, {.waiting = {{90, 10}}, .places = 4, .owner = "bob"}}, 4);
  EXPECT_NEAR(seconds[0], 300, 1);
  EXPECT_NEAR(seconds[1], 300, 10);
}

TEST(Completions, OneOfWhichNothingIsKnownKeepsItsShareAndKeepsThoseBehindItUnknown) {
  const Remaining unknown{.waiting = {{100, -1}}, .known = false, .places = 4, .owner = "bob"};
  const auto beside = completions({unknown, {.waiting = {{10, 100}}, .places = 4}}, 4);
  EXPECT_EQ(beside[0].seconds, std::nullopt);
  EXPECT_THAT(beside[1].seconds, Optional(DoubleNear(500, 1))) << "two of four slots";
  Remaining first = unknown;
  first.priority = 1;
  EXPECT_EQ(completions({first, {.waiting = {{10, 100}}, .places = 4}}, 4)[1].seconds, std::nullopt);
  EXPECT_EQ(completions({first, {.running = {7}, .places = 4}}, 4)[1].seconds, 7.0) << "it has its slot";
}

TEST(Completions, SweepsOfWhichNothingIsLeftAreComplete) {
  EXPECT_EQ(completions({{}}, 4)[0].seconds, 0.0);
  EXPECT_TRUE(completions({}, 0).empty());
}

}  // namespace
}  // namespace abl::views
