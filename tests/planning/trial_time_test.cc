// SPDX-License-Identifier: Apache-2.0
#include "planning/trial_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/document/trial_document.h"
#include "planning/plan_time.h"

namespace abl::planning {
namespace {

using testing::HasSubstr;

config::TrialConfig trial(const std::string& recipe = R"("epochs": 4)", const std::string& data = "shapes",
                          const std::string& model = R"({"preset": "simple-vit-nano"})") {
  return config::read_trial_or_throw(
      config::Json::parse(R"({"model": )" + model + R"(, "data": {"name": ")" + data +
                          R"("}, "recipe": {"lr": 0.001, "batch": 100, )" + recipe + R"(}, "seed": 0})"));
}

/// 1,000 multiply-adds for an image of each of these trials.
ModelCounts counts_of(const std::vector<config::TrialConfig>& trials) {
  ModelCounts counts;
  for (const auto& one : trials) counts[config::canonical_model_text(one)] = {{"flops.macs", 1000}};
  return counts;
}

Workload workload(const config::TrialConfig& trial, const std::map<std::string, ImageCounts>& images = {}) {
  std::string missing;
  const auto work = workload_of(trial, counts_of({trial}), images, missing);
  EXPECT_TRUE(work) << missing;
  return work.value_or(Workload{});
}

TEST(WorkloadTest, CountsStepsEvaluationsAndTheImagesOfBoth) {
  const auto work = workload(trial(R"("epochs": 4, "eval_every": 1.5, "ema": 0.9)"));
  EXPECT_EQ(work.steps, 4 * 400) << "40,000 images in full batches";
  EXPECT_EQ(work.step_images, 100);
  EXPECT_EQ(work.evaluations, 3) << "after 1.5 and 3 epochs, and at the end";
  EXPECT_EQ(work.evaluated, 3 * 2000 * 2) << "the running average is evaluated too";
  EXPECT_EQ(work.image_macs, 1000);
  EXPECT_EQ(work.step_macs, 3000);
  EXPECT_EQ(workload(trial(R"("epochs": 1)")).evaluations, 1);
}

TEST(WorkloadTest, LastBatchThatIsNotFullIsDropped) {
  auto some = trial();
  some.data.train_images = 250;
  EXPECT_EQ(workload(some).steps, 4 * 2);
  some.data.train_images = 30;
  EXPECT_EQ(workload(some).steps, 4) << "fewer images than a batch are one";
  EXPECT_EQ(workload(some).step_images, 30);
}

TEST(WorkloadTest, HeldOutImagesAreEvaluatedAndNotTrainedOn) {
  auto some = trial();
  some.data.train_images = 1000, some.data.held_out = 0.25;
  EXPECT_EQ(workload(some).steps, 4 * 7) << "of 750 images";
  EXPECT_EQ(workload(some).evaluated, workload(some).evaluations * 250);
  some.data.held_out = 500;
  EXPECT_EQ(workload(some).steps, 4 * 5);
  auto own = some;
  own.data.name = "mine", own.data.train_images = 0;
  EXPECT_EQ(workload(own, {{"mine", {.train = 700, .val = 100}}}).steps, 4 * 2);
}

TEST(WorkloadTest, RecomputedBlocksAndTheTeacherAddAForwardPass) {
  EXPECT_EQ(workload(trial(R"("epochs": 4, "checkpoint_blocks": 1)")).step_macs, 4000);
  auto distilled = trial();
  distilled.recipe.distillation = config::Distillation::kHard;
  distilled.recipe.teacher = "simple-vit-nano";
  EXPECT_EQ(workload(distilled).step_macs, 4000);
}

TEST(WorkloadTest, DataOfUnknownSizeSayHowToLook) {
  auto own = trial();
  own.data.name = "mine", own.data.train_images = own.data.val_images = 0;
  std::string missing;
  EXPECT_FALSE(workload_of(own, counts_of({own}), {}, missing));
  EXPECT_THAT(missing, HasSubstr("--measure --data mine=FOLDER"));
  EXPECT_EQ(workload(own, {{"mine", {.train = 1000, .val = 100}}}).steps, 40);
  EXPECT_FALSE(workload_of(own, {}, {}, missing));
  EXPECT_EQ(missing, "its FLOPs are not known");
}

TEST(StepHashTest, LengthSeedAndRatesAreNoPartOfAStep) {
  auto one = trial(), other = trial(R"("epochs": 9, "lr": 0.5, "eval_every": 2, "warmup": 0.2)");
  other.seed = 7, other.data.train_images = 500;
  EXPECT_EQ(step_hash(one), step_hash(other));
  other.recipe.batch = 50;
  EXPECT_NE(step_hash(one), step_hash(other));
  EXPECT_NE(step_hash(one), step_hash(trial(R"("epochs": 4, "ema": 0.9)"))) << "another operation";
}

storage::Calibration calibration(const config::TrialConfig& trial, double step) {
  return {.device = "cpu",
          .threads = 2,
          .step_hash = step_hash(trial),
          .config = config::canonical_text(trial),
          .step_seconds = step,
          .steps = 20,
          .image_seconds = 0.001,
          .start_seconds = 1,
          .checkpoint_seconds = 0.5};
}

TEST(TrialTimesTest, CalibrationOfItsStepGivesTheTimeOfATrial) {
  const auto one = trial(R"("epochs": 1)");
  const TrialTimes times{{.threads = 2}, {calibration(one, 0.01)}, {}, counts_of({one}), {}};
  const auto time = times.of(workload(one), 0);
  EXPECT_EQ(time.from, TrialTime::From::kCalibration);
  EXPECT_NEAR(time.seconds, 1 + 400 * 0.01 + 2000 * 0.001 + 0.5, 1e-9);
  EXPECT_LT(time.low, time.seconds * 0.9);
  EXPECT_GT(time.high, time.seconds * 1.1);
  EXPECT_LT(time.high, time.seconds * 1.25);
  EXPECT_EQ(times.of(workload(trial(R"("epochs": 2)")), 0).from, TrialTime::From::kCalibration)
      << "a longer one takes the same steps";
}

TEST(TrialTimesTest, OthersFollowFromTheirFlopsAndTheIntervalIsWider) {
  const auto one = trial(R"("epochs": 1)"), like = trial(R"("epochs": 1, "batch": 50)");
  auto counts = counts_of({one, like});
  const TrialTimes times{{.threads = 2}, {calibration(one, 0.01)}, {}, counts, {}};
  std::string missing;
  const auto time = times.of(*workload_of(like, counts, {}, missing), 0);
  EXPECT_EQ(time.from, TrialTime::From::kLike);
  EXPECT_NEAR(time.seconds, 1 + 0.5 + 800 * 0.005 + 2000 * 0.01 / 100 / 3, 0.2);
  EXPECT_GT(time.high / time.seconds, 1.5) << "one other alone was measured";
}

TEST(TrialTimesTest, WithoutAMeasurementAStatedRateSaysThreeTimesMoreOrLess) {
  const auto one = trial();
  const TrialTimes times{{.device = "NVIDIA H100 80GB HBM3"}, {}, {}, counts_of({one}), {}};
  const auto time = times.of(workload(one), 1);
  EXPECT_EQ(time.from, TrialTime::From::kFlops);
  EXPECT_NEAR(time.high / time.low, 9, 1e-6);
  std::string named;
  EXPECT_NEAR(
      stated_rate({.device = "NVIDIA H100 80GB HBM3"}, config::Precision::kBFloat16, &named).macs_per_second,
      0.25 * 989e12 / 2, 1e9);
  EXPECT_EQ(named, "NVIDIA H100");
  stated_rate({.device = "some new GPU"}, config::Precision::kFloat32, &named);
  EXPECT_EQ(named, "NVIDIA A100");
}

TEST(TrialTimesTest, SeveralGpusTakeTheirPartsAndWaitForEachOther) {
  const auto one = trial(R"("epochs": 100)");
  const TrialTimes times{{.device = "NVIDIA A100"}, {}, {}, counts_of({one}), {}};
  const auto alone = times.of(workload(one), 1), four = times.of(workload(one), 4);
  EXPECT_GT(four.seconds, alone.seconds / 4);
  EXPECT_GT(four.high / four.seconds, alone.high / alone.seconds);
}

TEST(TimeFromRunsTest, SpreadOfTheRunsGivesTheInterval) {
  const auto one = time_from_runs({.runs = 1, .seconds = 100});
  EXPECT_NEAR(one.high, 100 * (1 + 1.645 * 0.15), 1e-9);
  const auto four = time_from_runs({.runs = 4, .seconds = 100, .deviation = 5});
  EXPECT_NEAR(four.high, 100 + 2.35336 * 5 * std::sqrt(1.25), 0.01);
  EXPECT_EQ(four.why, "4 runs");
  EXPECT_LT(time_from_runs({.runs = 4, .seconds = 100, .deviation = 0}).low, 100) << "no two runs are equal";
}

TEST(ToMeasureTest, DistinctStepsAreTakenOnceAndEvenly) {
  sweeps::SweepSpec spec;
  for (int batch = 10; batch <= 100; batch += 10)
    for (const int epochs : {1, 2}) {
      sweeps::Row row;
      auto one = trial("\"epochs\": " + std::to_string(epochs));
      one.recipe.batch = batch;
      row.config = config::canonical_text(one);
      spec.rows.push_back(row);
    }
  EXPECT_EQ(to_measure(spec, 99).size(), 10u);
  const auto three = to_measure(spec, 3);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(trial_of(three.front())->recipe.batch, 10);
  EXPECT_EQ(trial_of(three.back())->recipe.batch, 100);
  spec.rows[0].config = R"({"argv": ["true"]})";
  EXPECT_EQ(to_measure(spec, 99).size(), 10u) << "a command is not timed";
}

}  // namespace
}  // namespace abl::planning
