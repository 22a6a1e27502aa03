// SPDX-License-Identifier: Apache-2.0
#include "models/layers/dropout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <memory>

#include "models/backbones/model_options.h"
#include "models/counting/memory.h"
#include "tests/models/refusal.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

TEST(Dropout, KeepsTheExpectationAndDrawsAsPyTorch) {
  torch::manual_seed(1);
  const auto x = torch::ones({1000, 100}), dropped = drop_out(x, 0.3, /*is_training=*/true);
  EXPECT_NEAR(dropped.eq(0).to(torch::kDouble).mean().item<double>(), 0.3, 0.01);
  EXPECT_NEAR(dropped.max().item<double>(), 1 / 0.7, 1e-6);
  torch::manual_seed(1);
  EXPECT_TRUE(dropped.equal(torch::dropout(x, 0.3, /*train=*/true)));
}

TEST(Dropout, IsTheTensorItselfInEvaluationAndAtRate0AndRefusesWhatIsNoProbability) {
  const auto x = torch::randn({3, 4});
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_TRUE(drop_out(x, 0.5, /*is_training=*/false).is_same(x));
  EXPECT_TRUE(drop_out(x, 0, /*is_training=*/true).is_same(x));
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(state)) << "no number is drawn";
  for (const double rate : {-0.1, 1.0, std::nan("")})
    EXPECT_THROW(drop_out(x, rate, /*is_training=*/false), c10::ValueError) << rate;
}

/// With factors of 1-d parameters drawn, so that no branch starts at 0.
std::shared_ptr<Classifier> drawn(const ModelOptions& options) {
  torch::manual_seed(5);
  const auto model = build(options);
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model->parameters())
    if (parameter.dim() == 1) parameter.uniform_(0.5, 1.5);
  return model;
}

torch::Tensor run_seeded(Classifier& model, const torch::Tensor& images) {
  torch::manual_seed(6);
  return model.forward(images);
}

TEST(DropoutOfModels, OfTheHeadActsInTrainingAloneInEveryFamily) {
  for (const auto& [name, options] : small_models()) {
    const auto plain = drawn(options), dropping = drawn(with_dropout(options, {.head = 0.6}));
    const auto images = torch::randn({8, 3, 64, 64});
    plain->eval(), dropping->eval();
    EXPECT_TRUE(run_seeded(*plain, images).equal(run_seeded(*dropping, images))) << name;
    plain->train(), dropping->train();
    EXPECT_FALSE(run_seeded(*plain, images).equal(run_seeded(*dropping, images))) << name;
  }
}

TEST(DropoutOfModels, OfPositionsActsWhereTokensHaveSuch) {
  for (const char* name : {"vit", "key-vit", "simple-vit", "xcit"}) {
    const auto options = small_model(name);
    const auto plain = drawn(options), dropping = drawn(with_dropout(options, {.positions = 0.6}));
    const auto images = torch::randn({8, 3, 64, 64});
    plain->train(), dropping->train();
    EXPECT_FALSE(run_seeded(*plain, images).equal(run_seeded(*dropping, images))) << name;
  }
}

TEST(DropoutOfModels, HasAPredictedMemoryInEveryFamily) {
  for (const auto& [name, options] : small_models()) {
    const StepOptions step{.batch = 4, .image_size = 64};
    const auto predict = [&](const ModelOptions& chosen) {
      return predict_step_memory([&](torch::Device device) { return build(chosen, device); }, step).peak;
    };
    const auto with = predict(with_dropout(options, {.head = 0.3})), without = predict(options);
    EXPECT_NEAR(static_cast<double>(with) / static_cast<double>(without), 1, 0.05) << name;
  }
}

}  // namespace
}  // namespace abl::models
