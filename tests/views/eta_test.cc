// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(Makespan, ATrialBeginsAfterThoseWhoseWeightsItTakes) {
  const Remaining chain{.waiting = {{.trials = 1, .seconds = 10, .row = "fine", .after = {"pre"}},
                                    {.trials = 1, .seconds = 100, .row = "pre"}}};
  EXPECT_EQ(makespan(chain, 1), 110);
  EXPECT_EQ(makespan(chain, 8), 110) << "more places make no chain shorter";
  const Remaining three{.waiting = {{.trials = 3, .seconds = 10, .row = "fine", .after = {"pre"}},
                                    {.trials = 3, .seconds = 100, .row = "pre"}}};
  EXPECT_EQ(makespan(three, 3), 110) << "each seed by itself";
  EXPECT_EQ(makespan(three, 1), 330);
  EXPECT_EQ(makespan(three, 2), 220) << "the first seeds of all rows go before the third is pretrained";
  const Remaining others{.waiting = {{.trials = 1, .seconds = 10, .row = "fine", .after = {"pre"}},
                                     {.trials = 1, .seconds = 100, .row = "pre"},
                                     {.trials = 10, .seconds = 10, .row = "else"}}};
  EXPECT_EQ(makespan(others, 2), 110) << "others run while it waits";
  const Remaining running{
      .waiting = {{.trials = 2, .seconds = 10, .row = "fine", .after = {"pre"}, .ready = 60},
                  {.trials = 1, .seconds = 100, .row = "pre"}},
      .running = {60}};
  EXPECT_EQ(makespan(running, 2), 110) << "one after what runs, one after what waits";
  const Remaining one_seed{.waiting = {{.trials = 3, .seconds = 10, .row = "fine", .after = {"pre"}},
                                       {.trials = 1, .seconds = 100, .row = "pre"}}};
  EXPECT_EQ(makespan(one_seed, 3), 110) << "all of one";
  EXPECT_EQ(makespan({.waiting = {{.trials = 1, .seconds = 10, .row = "fine", .after = {"done"}}}}, 4), 10);
  EXPECT_NEAR(makespan({.waiting = {{.trials = 2e4, .seconds = 10, .row = "fine", .after = {"pre"}},
                                    {.trials = 2e4, .seconds = 1000, .row = "pre"}}},
                       1e9),
              1010, 501)
      << "without a look at each";
}

TEST(Completions, AChainTakesItsTimeHoweverManySlotsThereAre) {
  for (const auto& done :
       completions({{.waiting = {{.trials = 2, .seconds = 50, .row = "c", .after = {"a", "b"}},
                                 {.trials = 2, .seconds = 50, .row = "b", .after = {"a"}},
                                 {.trials = 2, .seconds = 100, .row = "a"}},
       .places = 16}},
                   16))
    EXPECT_NEAR(*done.seconds, 200, 1);
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

TEST(Completions, WhatRunsKeepsItsSlotsUntilItEndsWhateverThePriorityOfOthers) {
  const Remaining runs{.running = {17, 20}, .places = 2};
  const Remaining quick{.waiting = {{2, 0.6}}, .places = 2, .priority = 9, .owner = "bob"};
  EXPECT_THAT(seconds_of({runs, quick}, 2), testing::ElementsAre(20, DoubleNear(18.2, 1e-6)))
      << "in the slot that is free first, one after the other";
  EXPECT_THAT(seconds_of({runs, quick}, 3), testing::ElementsAre(20, DoubleNear(1.2, 1e-6)))
      << "in the one that is free";
  const Remaining more{.waiting = {{10, 20}}, .running = {17, 20}, .places = 2};
  EXPECT_NEAR(seconds_of({more, quick}, 2)[1], 18.2, 1e-6) << "before what waits";
  EXPECT_NEAR(completions({more, quick}, 2)[1].at_once, 1, 1e-6) << "while it has slots";
}

TEST(Completions, RunsOfLowerPriorityGiveWayToASweepThatPreempts) {
  Remaining low{.running = {17, 20}, .places = 2}, high{.waiting = {{2, 0.6}}, .places = 2, .priority = 9};
  high.preempts = true;
  EXPECT_THAT(seconds_of({low, high}, 2),
              testing::ElementsAre(DoubleNear(20.6, 1e-6), DoubleNear(0.6, 1e-6)));
  EXPECT_THAT(seconds_of({low, high}, 3), testing::ElementsAre(DoubleNear(20, 1), DoubleNear(0.6, 1e-6)));
  low.priority = 9;
  EXPECT_NEAR(seconds_of({low, high}, 2)[1], 18.2, 1e-6) << "not those of its own";
  low.priority = 0, low.resumable = false;
  EXPECT_NEAR(seconds_of({low, high}, 2)[1], 18.2, 1e-6) << "nor those that could not continue";
}

TEST(Completions, ARunOfWhichNobodyKnowsWhenItEndsKeepsThoseBehindItUnknown) {
  const Remaining unknown{.running = {-1}, .known = false}, quick{.waiting = {{1, 3}}, .priority = 9};
  EXPECT_EQ(completions({unknown, quick}, 1)[1].seconds, std::nullopt);
  EXPECT_THAT(completions({unknown, quick}, 2)[1].seconds, Optional(DoubleNear(3, 1e-6)));
}

TEST(Completions, ARunThatTwoSweepsWantHoldsItsSlotOnce) {
  const Remaining both{.running = {50}};
  Remaining again = both;
  again.counted = 1;
  EXPECT_THAT(seconds_of({both, again, {.waiting = {{1, 3}}}}, 2),
              testing::ElementsAre(50, 50, DoubleNear(3, 1e-6)));
}

TEST(Completions, OfManyRunsThatEndOneAfterTheOtherNotEachCostsALookAtAllSweeps) {
  std::vector<Remaining> sweeps(200);
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    sweeps[i].owner = std::string(1, static_cast<char>('a' + i % 20));
    for (int run = 0; run < 50; ++run) sweeps[i].running.push_back(100 + 0.01 * static_cast<double>(i) + run);
    sweeps[i].waiting = {{20, 100}}, sweeps[i].places = 10'000;
  }
  const auto seconds = seconds_of(sweeps, 10'000);
  EXPECT_GE(*std::ranges::min_element(seconds), 200);
  EXPECT_LE(*std::ranges::max_element(seconds), 275);
}

TEST(Completions, SweepsOfWhichNothingIsLeftAreComplete) {
  EXPECT_EQ(completions({{}}, 4)[0].seconds, 0.0);
  EXPECT_TRUE(completions({}, 0).empty());
}

}  // namespace
}  // namespace abl::views
