// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace abl::trainer {
namespace {

config::RecipeConfig ten_epochs() {
  config::RecipeConfig recipe;
  recipe.epochs = 10, recipe.batch = 100, recipe.lr = 1e-3, recipe.warmup = 0.1,
  recipe.warmup_start = 1.0 / 30, recipe.eval_every = 2;
  return recipe;
}

TEST(ScheduleTest, AnEpochIsItsFullBatches) {
  const auto length = training::length_of(ten_epochs(), 1050);
  EXPECT_EQ(length.steps_per_epoch, 10);
  EXPECT_EQ(length.total_steps, 100);
  EXPECT_EQ(length.eval_every, 20);
}

TEST(ScheduleTest, AFractionOfAnEpochIsStillAtLeastOneStep) {
  auto short_recipe = ten_epochs();
  short_recipe.epochs = 0.01;
  EXPECT_EQ(training::length_of(short_recipe, 1000).total_steps, 1);
  EXPECT_EQ(training::length_of(ten_epochs(), 7).steps_per_epoch, 1)
      << "fewer images than a batch make one small batch";
}

TEST(ScheduleTest, WarmsUpLinearlyFromAThirtiethOfThePeak) {
  EXPECT_DOUBLE_EQ(training::learning_rate(ten_epochs(), 0, 100), 1e-3 / 30);
  EXPECT_DOUBLE_EQ(training::learning_rate(ten_epochs(), 5, 100), 1e-3 * (1.0 / 30 + (1 - 1.0 / 30) * 0.5));
  EXPECT_DOUBLE_EQ(training::learning_rate(ten_epochs(), 10, 100), 1e-3);
}

TEST(ScheduleTest, FallsAsACosineToItsEnd) {
  EXPECT_NEAR(training::learning_rate(ten_epochs(), 55, 100), 0.5e-3, 1e-12)
      << "half way between the end of the warm-up and the end";
  EXPECT_NEAR(training::learning_rate(ten_epochs(), 100, 100), 0, 1e-12);
  auto with_floor = ten_epochs();
  with_floor.min_lr = 1e-5;
  EXPECT_NEAR(training::learning_rate(with_floor, 100, 100), 1e-5, 1e-12);
}

TEST(ScheduleTest, NoWarmUpStartsAtThePeak) {
  auto cold = ten_epochs();
  cold.warmup = 0;
  EXPECT_DOUBLE_EQ(training::learning_rate(cold, 0, 100), 1e-3);
}

TEST(ScheduleTest, LinearFallsAlongALine) {
  auto linear = ten_epochs();
  linear.schedule = config::Schedule::kLinear, linear.min_lr = 1e-4;
  EXPECT_DOUBLE_EQ(training::learning_rate(linear, 10, 100), 1e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(linear, 55, 100), 0.55e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(linear, 100, 100), 1e-4);
}

TEST(ScheduleTest, PolynomialFallsWithAPower) {
  auto polynomial = ten_epochs();
  polynomial.schedule = config::Schedule::kPolynomial, polynomial.min_lr = 1e-4, polynomial.power = 2;
  EXPECT_DOUBLE_EQ(training::learning_rate(polynomial, 10, 100), 1e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(polynomial, 55, 100), 1e-4 + 0.25 * 0.9e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(polynomial, 100, 100), 1e-4);
}

TEST(ScheduleTest, OneCycleRisesAndFallsAlongCosines) {
  auto cycle = ten_epochs();
  cycle.schedule = config::Schedule::kOneCycle, cycle.warmup_start = 0, cycle.min_lr = 5e-6;
  EXPECT_DOUBLE_EQ(training::learning_rate(cycle, 0, 100), 0);
  EXPECT_NEAR(training::learning_rate(cycle, 5, 100), 0.5e-3, 1e-12) << "half way up";
  EXPECT_LT(training::learning_rate(cycle, 2, 100), 0.2e-3) << "below the line";
  EXPECT_DOUBLE_EQ(training::learning_rate(cycle, 10, 100), 1e-3);
  EXPECT_NEAR(training::learning_rate(cycle, 100, 100), 5e-6, 1e-12);
}

TEST(ScheduleTest, StepsGoDownAtTheirEpochs) {
  auto steps = ten_epochs();
  steps.schedule = config::Schedule::kStep, steps.step_epochs = {3, 6}, steps.step_factor = 0.5,
  steps.warmup = 0;
  EXPECT_DOUBLE_EQ(training::learning_rate(steps, 29, 100), 1e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(steps, 30, 100), 0.5e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(steps, 59, 100), 0.5e-3);
  EXPECT_DOUBLE_EQ(training::learning_rate(steps, 60, 100), 0.25e-3);
}

TEST(ScheduleTest, ConstantStaysAfterItsWarmUp) {
  auto constant = ten_epochs();
  constant.schedule = config::Schedule::kConstant;
  EXPECT_LT(training::learning_rate(constant, 5, 100), 1e-3);
  for (const std::int64_t done : {10, 50, 99})
    EXPECT_DOUBLE_EQ(training::learning_rate(constant, done, 100), 1e-3);
}

TEST(ScheduleTest, WeightDecayGoesToItsEndAlongACosine) {
  auto recipe = ten_epochs();
  recipe.weight_decay = 0.04, recipe.weight_decay_end = 0.4;
  EXPECT_DOUBLE_EQ(training::weight_decay(recipe, 0, 100), 0.04);
  EXPECT_NEAR(training::weight_decay(recipe, 25, 100), 0.04 + 0.36 * 0.5 * (1 - std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(training::weight_decay(recipe, 50, 100), 0.22, 1e-12);
  EXPECT_NEAR(training::weight_decay(recipe, 99, 100), 0.4, 1e-4) << "of the last step";
  EXPECT_DOUBLE_EQ(training::weight_decay(recipe, 100, 100), 0.4);
  recipe.weight_decay_end = 0.04;
  for (const std::int64_t done : {0, 37, 99}) EXPECT_EQ(training::weight_decay(recipe, done, 100), 0.04);
}

}  // namespace
}  // namespace abl::trainer
