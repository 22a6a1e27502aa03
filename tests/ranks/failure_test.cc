// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <signal.h>

#include "tests/ranks/rank_processes.h"
#include "tests/ranks/trial_files.h"

namespace abl::ranks {
namespace {

using testing::HasSubstr;

class FailureTest : public RanksTest {
 protected:
  /// A run that is far from its end when it is looked at.
  static json long_trial() {
    auto recipe = full_recipe();
    recipe["epochs"] = 100'000;
    return trial(small_vit(), recipe);
  }
};

TEST_F(FailureTest, ARankThatIsKilledTakesTheRunDownAndLeavesNoProcess) {
  for (const int victim : {0, 1}) {
    TrainerProgram program{arguments(long_trial(), 2)};
    program.reach(2);
    const auto pids = ranks_of(program.child().pid());
    ASSERT_EQ(pids.size(), 2U);
    ::kill(pids.at(static_cast<std::size_t>(victim)), SIGKILL);
    const auto said = read_all(program);
    EXPECT_EQ(said.end.value("status", ""), "failed");
    EXPECT_THAT(said.end.value("reason", ""),
                HasSubstr("rank " + std::to_string(victim) + " of 2: killed by SIGKILL (9)"));
    EXPECT_TRUE(said.end.value("retryable", false));
    EXPECT_EQ(said.exit_code, 1);
    for (const pid_t pid : pids) EXPECT_FALSE(lives(pid));
  }
}

TEST_F(FailureTest, RanksDieWithTheTrainer) {
  TrainerProgram program{arguments(long_trial(), 2)};
  program.reach(1);
  const auto pids = ranks_of(program.child().pid());
  ASSERT_EQ(pids.size(), 2U);
  ::kill(program.child().pid(), SIGKILL);
  program.child().wait();
  for (const pid_t pid : pids) wait_for_the_end_of(pid);
}

TEST_F(FailureTest, AHungRankIsEndedWhenAnotherOneFails) {
  TrainerProgram program{arguments(long_trial(), 3)};
  program.reach(2);
  const auto pids = ranks_of(program.child().pid());
  ASSERT_EQ(pids.size(), 3U);
  ::kill(pids[2], SIGSTOP);
  ::kill(pids[1], SIGSEGV);
  const auto said = read_all(program);
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("rank 1 of 3: killed by SIGSEGV (11)"));
  for (const pid_t pid : pids) EXPECT_FALSE(lives(pid));
}

TEST_F(FailureTest, WhatAllRanksMeetIsSaidOnceAndAsByOneRank) {
  auto recipe = full_recipe();
  recipe["lr"] = 1e30, recipe["clip_norm"] = 0, recipe["optimiser"] = "sgd";
  const auto one = run(trial(small_vit(), recipe), 1), two = run(trial(small_vit(), recipe), 2);
  EXPECT_THAT(one.end.value("reason", ""), HasSubstr("diverged: the training loss is not finite since step"));
  EXPECT_EQ(two.end, one.end);
  EXPECT_EQ(two.exit_code, one.exit_code);
}

TEST_F(FailureTest, ABatchTooSmallForTheRanksIsRefusedInOneLine) {
  auto recipe = full_recipe();
  recipe["batch"] = 4, recipe["accumulate"] = 2;
  const auto said = run(trial(small_vit(), recipe), 3);
  EXPECT_EQ(said.end.value("status", ""), "failed");
  EXPECT_THAT(said.end.value("reason", ""), testing::StartsWith("recipe.batch: 4 images in parts of 2"));
  EXPECT_FALSE(said.end.value("retryable", true));
  EXPECT_EQ(said.exit_code, 2);
}

TEST_F(FailureTest, ABatchTooSmallForTheRanksIsRefusedBeforeAnyOfThemLooksAtItsData) {
  auto recipe = full_recipe();
  recipe["batch"] = 4, recipe["accumulate"] = 2;
  auto other = trial(small_vit(), recipe);
  other["data"] = {{"name", "own"}, {"classes", 2}, {"image_size", 32}};  // no folder is named
  const auto said = run(other, 3);
  EXPECT_THAT(said.end.value("reason", ""), testing::StartsWith("recipe.batch: 4 images in parts of 2"));
  EXPECT_EQ(said.exit_code, 2);
}

TEST_F(FailureTest, OneGpuIsNotForSeveralRanks) {
  const auto said = run(trial(small_vit(), full_recipe()), 2, {"--device", "cuda:1"});
  EXPECT_THAT(said.end.value("reason", ""), HasSubstr("--device cuda:1 is one GPU; with --ranks 2"));
  EXPECT_EQ(said.exit_code, 2);
}

}  // namespace
}  // namespace abl::ranks
