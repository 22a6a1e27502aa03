// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/schedule.h"

#include <gtest/gtest.h>

namespace abl::trainer {
namespace {

config::RecipeConfig recipe() {
  config::RecipeConfig recipe;
  recipe.epochs = 10, recipe.batch = 100, recipe.lr = 1e-3, recipe.warmup = 0.1,
  recipe.warmup_start = 1.0 / 30, recipe.eval_every = 2;
  return recipe;
}

TEST(ScheduleTest, AnEpochIsItsFullBatches) {
  const auto length = length_of(recipe(), 1050);
  EXPECT_EQ(length.steps_per_epoch, 10);
  EXPECT_EQ(length.total_steps, 100);
  EXPECT_EQ(length.eval_every, 20);
}

TEST(ScheduleTest, AFractionOfAnEpochIsStillAtLeastOneStep) {
  auto short_recipe = recipe();
  short_recipe.epochs = 0.01;
  EXPECT_EQ(length_of(short_recipe, 1000).total_steps, 1);
  EXPECT_EQ(length_of(recipe(), 7).steps_per_epoch, 1) << "fewer images than a batch make one small batch";
}

TEST(ScheduleTest, WarmsUpLinearlyFromAThirtiethOfThePeak) {
  EXPECT_DOUBLE_EQ(learning_rate(recipe(), 0, 100), 1e-3 / 30);
  EXPECT_DOUBLE_EQ(learning_rate(recipe(), 5, 100), 1e-3 * (1.0 / 30 + (1 - 1.0 / 30) * 0.5));
  EXPECT_DOUBLE_EQ(learning_rate(recipe(), 10, 100), 1e-3);
}

TEST(ScheduleTest, FallsAsACosineToItsEnd) {
  EXPECT_NEAR(learning_rate(recipe(), 55, 100), 0.5e-3, 1e-12)
      << "half way between the end of the warm-up and the end";
  EXPECT_NEAR(learning_rate(recipe(), 100, 100), 0, 1e-12);
  auto with_floor = recipe();
  with_floor.min_lr = 1e-5;
  EXPECT_NEAR(learning_rate(with_floor, 100, 100), 1e-5, 1e-12);
}

TEST(ScheduleTest, NoWarmUpStartsAtThePeak) {
  auto cold = recipe();
  cold.warmup = 0;
  EXPECT_DOUBLE_EQ(learning_rate(cold, 0, 100), 1e-3);
}

}  // namespace
}  // namespace abl::trainer
