// SPDX-License-Identifier: Apache-2.0
// Several ranks train as one rank does with the same batch, within what the order of additions changes.
#include "tests/ranks/trial_files.h"

namespace abl::ranks {
namespace {

using EqualityTest = RanksTest;

TEST_F(EqualityTest, TwoRanksTrainAsOneDoesWithAFullRecipe) {
  const auto full = trial(small_vit(), full_recipe());
  const auto one = run(full, 1), two = run(full, 2);
  expect_same(one, two, 1e-4);
  EXPECT_EQ(one.points.at("train/loss").size(), 12U);
  EXPECT_EQ(one.points.at("val_ema/loss").size(), 2U);
  EXPECT_EQ(two.start.at("environment").at("ranks"), 2);
  EXPECT_EQ(one.start.at("data_fingerprint"), two.start.at("data_fingerprint"));
}

TEST_F(EqualityTest, ABatchThatTheRanksDoNotDivideIsWeighed) {
  auto recipe = full_recipe();
  recipe["batch"] = 21, recipe["optimiser"] = "adamw", recipe["lr"] = 0.001, recipe["epochs"] = 1;
  const auto odd = trial(small_vit(), recipe);
  expect_same(run(odd, 1), run(odd, 3), 1e-3);
}

TEST_F(EqualityTest, TwoRanksHoldOutTheSameImages) {
  auto recipe = full_recipe();
  recipe["epochs"] = 1;
  auto holding = trial(small_vit(), recipe);
  holding["data"]["held_out"] = 0.25;
  const auto one = run(holding, 1);
  expect_same(one, run(holding, 2), 1e-4);
  EXPECT_EQ(one.points.at("train/loss").size(), 4U) << "90 of 120 images";
}

TEST_F(EqualityTest, AModelWithBatchNormalisationDoesSoWithSyncBatchNorm) {
  auto recipe = full_recipe();
  recipe["sync_batch_norm"] = true;
  const auto one = run(trial(small_xcit(), recipe), 1), two = run(trial(small_xcit(), recipe), 2);
  expect_same(one, two, 1e-3);
  recipe["sync_batch_norm"] = false;
  const auto local = run(trial(small_xcit(), recipe), 2);
  EXPECT_GT(std::abs(local.points.at("train/loss").at(1) - one.points.at("train/loss").at(1)), 1e-4)
      << "without, each rank has statistics of its own";
}

TEST_F(EqualityTest, ASegmentationIsLearnedAndJudgedTheSame) {
  const auto segmentation = json::parse(R"({
    "model": {"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8},
    "data": {"name": "scenes", "train_images": 12, "val_images": 5, "image_size": 64},
    "task": {"kind": "segment", "width": 16, "dropout": 0},
    "recipe": {"use": "demo", "epochs": 2, "batch": 6, "eval_every": 1, "optimiser": "sgd", "lr": 0.05, "flip": 0.5,
               "scale_range": [0.75, 1.5], "largest_class": 0.9, "distortion": true, "ema": 0.9, "clip_norm": 1,
               "accumulate": 2, "sync_batch_norm": true},
    "seed": 0})");
  const auto one = run(segmentation, 1), two = run(segmentation, 2);
  expect_same(one, two, 2e-3);
  EXPECT_EQ(one.points.at("val/miou").size(), 2U);
  EXPECT_EQ(one.points.at("val_ema/aacc").size(), 2U);
}

TEST_F(EqualityTest, ADetectionIsLearnedAndJudgedTheSame) {
  const auto detection = json::parse(R"({
    "model": {"family": "xcit", "dim": 16, "depth": 4, "heads": 2, "patch": 8},
    "data": {"name": "scenes", "train_images": 8, "val_images": 5, "image_size": 64},
    "task": {"kind": "detect", "width": 16, "anchors": [8, 16, 32, 64, 128], "proposals": 40, "sampled": 16,
             "box_width": 16, "mask_width": 16},
    "recipe": {"use": "demo", "epochs": 2, "batch": 4, "eval_every": 1, "optimiser": "sgd", "lr": 0.01, "flip": 0.5,
               "scale_range": [0.75, 1.5], "clip_norm": 1, "sync_batch_norm": true},
    "seed": 0})");
  const auto one = run(detection, 1), two = run(detection, 2);
  ASSERT_EQ(two.end.value("status", ""), "completed") << two.end;
  // how many boxes of things a rank's half has decides what they weigh: the same but for that
  for (const auto& [step, loss] : one.points.at("train/loss"))
    EXPECT_NEAR(two.points.at("train/loss").at(step), loss, 0.1 * loss) << "at step " << step;
  EXPECT_EQ(two.points.at("val/box_ap").size(), one.points.at("val/box_ap").size());
}

TEST_F(EqualityTest, ASelfDistillationIsLearnedAndJudgedTheSame) {
  const auto one = run(self_distillation(), 1), two = run(self_distillation(), 2);
  expect_same(one, two, 1e-3);
  EXPECT_EQ(one.points.at("val/knn20").size(), 2U);
  EXPECT_TRUE(one.state().contains("model.centre.mean"));
}

TEST_F(EqualityTest, HalfPrecisionAgreesOnTheStepsThatAreLeftOut) {
  auto recipe = full_recipe();
  recipe["precision"] = "fp16";
  const auto half = trial(small_vit(), recipe);
  const auto one = run(half, 1), two = run(half, 2);
  expect_same(one, two, 2e-2);
  EXPECT_TRUE(torch::equal(one.state().at("scaler.scale"), two.state().at("scaler.scale")));
}

TEST_F(EqualityTest, GradientsOfPartsInBFloat16AreAddedUpInFloat32) {
  auto recipe = full_recipe();
  recipe["precision"] = "bf16", recipe["accumulate"] = 5, recipe["epochs"] = 1;
  const auto lowered = trial(small_vit(), recipe);
  const auto one = run(lowered, 1), two = run(lowered, 2);
  expect_same(one, two, 2e-2);
  // the first step's loss is of the same weights: what the ranks add up afterwards is its gradient
  EXPECT_NEAR(one.points.at("train/loss").at(2), two.points.at("train/loss").at(2), 2e-3);
}

TEST_F(EqualityTest, AParameterWithoutAGradientIsNoHindrance) {
  const auto model = json::parse(R"({
    "family": "key-vit", "dim": 16, "depth": 1, "heads": 2, "patch": 8,
    "key": {"method": "kua", "charts": 2, "broadcasting": "all"}})");
  const auto keys = trial(model, full_recipe());
  expect_same(run(keys, 1), run(keys, 2), 1e-3);
}

}  // namespace
}  // namespace abl::ranks
