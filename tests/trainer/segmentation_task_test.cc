// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/segment/segmentation.h"

#include <gtest/gtest.h>

#include "config/document/trial_document.h"
#include "data/annotated/scenes.h"
#include "worker/trainer/training/learner.h"

namespace abl::trainer {
namespace {

config::TrialConfig small_trial() {
  auto trial = config::read_trial_or_throw(
      {{"model", {{"family", "xcit"}, {"dim", 32}, {"depth", 4}, {"heads", 4}, {"patch", 8}}},
       {"data", {{"name", "pictures"}, {"image_size", 64}, {"classes", 8}}},
       {"recipe", {{"use", "demo"}, {"batch", 8}, {"weight_decay", 0.01}}},
       {"seed", 3}});
  return trial;
}

tasks::SegmentationOptions small_segmenter() {
  return {.segmenter = {.classes = 8, .head = models::SemanticFpnOptions{.channels = 32, .dropout = 0}},
          .maps = {},
          .view = {.ratio = {.longer = 128, .shorter = 64, .low = 1, .high = 1}, .width = 64, .height = 64}};
}

class SegmentationTask : public testing::Test {
 protected:
  tasks::Segmentation task(int threads = 2, std::uint32_t train = 16, std::uint32_t val = 6) {
    return {trial_, small_segmenter(), data::drawn_scenes(train, val, 64), {.loader_threads = threads}};
  }
  std::map<std::string, double> judged(tasks::Segmentation& task, torch::nn::Module& model) {
    const std::atomic<bool> never = false;
    return task.evaluate(model, "val", never, {}).value();
  }
  training::Learner learner(const tasks::Segmentation& task) {
    torch::manual_seed(1);
    return {task.new_model(), nullptr, trial_.recipe, torch::kCPU};
  }

  const config::TrialConfig trial_ = small_trial();
};

TEST_F(SegmentationTask, LearnsToTellGroundFromThings) {
  auto task = this->task();
  auto learner = this->learner(task);
  const auto before = judged(task, learner.model());
  task.load({.first = 0, .last = 60, .of_an_epoch = 2});
  double first = 0, last = 0;
  for (std::int64_t step = 0; task.next(); ++step) {
    learner.loss_sum().zero_();
    const auto work = task.work(learner.model(), step, false);
    EXPECT_EQ(work.images, 8);
    learner.step(work, 2e-3);
    last = learner.loss_sum().item<double>() / 8;
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.6 * first);
  const auto after = judged(task, learner.model());
  EXPECT_GT(after.at("val/aacc"), before.at("val/aacc"));
  EXPECT_GT(after.at("val/aacc"), 60) << "most is ground";
  EXPECT_LT(after.at("val/loss"), before.at("val/loss"));
  EXPECT_LE(after.at("val/miou"), after.at("val/macc"));
}

TEST_F(SegmentationTask, BatchesDependOnSeedAndStepAlone) {
  std::vector<torch::Tensor> seen;
  for (const auto& [threads, from] : {std::pair{1, 0}, {4, 0}, {2, 3}}) {
    auto task = this->task(threads);
    auto model = task.new_model();
    task.load({.first = from, .last = 4, .of_an_epoch = 2});
    tasks::Work work;
    for (std::int64_t step = from; task.next(); ++step) work = task.work(*model, step, false);
    seen.push_back(torch::cat({work.inputs[0].flatten(), work.inputs[1].flatten()}));
  }
  EXPECT_TRUE(torch::equal(seen[0], seen[1]));
  EXPECT_TRUE(torch::equal(seen[0], seen[2])) << "also where a run goes on";
}

TEST_F(SegmentationTask, HalfOfABatchIsForMeasurements) {
  auto task = this->task();
  auto learner = this->learner(task);
  task.load({.first = 0, .last = 1, .of_an_epoch = 2});
  ASSERT_TRUE(task.next());
  const auto half = task.work(learner.model(), 0, true);
  EXPECT_EQ(half.images, 4);
  learner.step(half, 1e-3);
  EXPECT_TRUE(std::isfinite(learner.loss_sum().item<double>()));
  EXPECT_FALSE(task.next());
}

TEST_F(SegmentationTask, AStopEndsAnEvaluation) {
  auto task = this->task();
  auto model = task.new_model();
  const std::atomic<bool> stop = true;
  EXPECT_FALSE(task.evaluate(*model, "val", stop, {}));
}

}  // namespace
}  // namespace abl::trainer
