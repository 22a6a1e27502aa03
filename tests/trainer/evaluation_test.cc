// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/classify/evaluation.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "worker/trainer/device/precision.h"

namespace abl::trainer {
namespace {

/// Tells images apart, by itself for each, and notes how many it is shown at a time.
class Watched final : public models::Classifier {
 public:
  torch::Tensor forward(const torch::Tensor& images) override {
    shown.push_back(images.size(0));
    return images.flatten(1).narrow(1, 0, 40).matmul(weight) * scale;
  }
  torch::Tensor weight = register_parameter("weight", torch::linspace(-1, 1, 400).view({40, 10}));
  double scale = 1;
  std::vector<std::int64_t> shown;
};

class EvaluationTest : public testing::Test {
 protected:
  tasks::Evaluation run(int accumulate) {
    trial_.recipe.accumulate = accumulate;
    model_.shown.clear();
    const auto data = data::open_data(trial_.data, "");
    ranks::RankGroup alone;
    const std::atomic<bool> never = false;
    return tasks::evaluate(model_, *data.val, trial_, torch::kCPU, 2, alone, never).value();
  }
  config::TrialConfig trial_ = config::read_trial_or_throw(config::Json::parse(R"({
      "model": {"family": "simple-vit", "dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "patch": 8},
      "data": {"name": "shapes", "train_images": 40, "val_images": 50},
      "recipe": {"use": "demo", "batch": 24}, "seed": 0})"));
  Watched model_;
};

TEST_F(EvaluationTest, ShowsAModelNoMoreImagesAtATimeThanAStepDoes) {
  const auto whole = run(1);
  EXPECT_EQ(model_.shown, (std::vector<std::int64_t>{24, 24, 2}));
  for (const int accumulate : {2, 5, 24, 100}) {
    const auto parts = run(accumulate);
    EXPECT_LE(std::ranges::max(model_.shown), std::max(1, (24 + accumulate - 1) / accumulate)) << accumulate;
    EXPECT_EQ(parts.images, 50);
    EXPECT_EQ(parts.top1, whole.top1);
    EXPECT_EQ(parts.top5, whole.top5);
    EXPECT_NEAR(parts.loss, whole.loss, 1e-6 * whole.loss);
  }
}

TEST_F(EvaluationTest, AResultThatIsNotFiniteIsNamed) {
  model_.scale = NAN;
  const auto values = run(1).values("val_ema");
  try {
    tasks::expect_finite(values, "at step 7");
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kAborted);
    EXPECT_STREQ(error.what(), "val_ema/loss is not finite at step 7: it is nan");
  }
  model_.scale = 1;
  tasks::expect_finite(run(1).values("val"), "at step 8");
}

TEST_F(EvaluationTest, ATeacherIsShownNoMoreImagesAtATimeThanAStepTakes) {
  const auto images = torch::rand({10, 3, 4, 4});
  const auto whole = device::logits_by_parts(model_, images, trial_.recipe, 10);
  EXPECT_EQ(model_.shown, std::vector<std::int64_t>{10});
  EXPECT_TRUE(torch::allclose(device::logits_by_parts(model_, images, trial_.recipe, 4), whole));
  EXPECT_EQ(model_.shown, (std::vector<std::int64_t>{10, 4, 4, 2}));
}

}  // namespace
}  // namespace abl::trainer
