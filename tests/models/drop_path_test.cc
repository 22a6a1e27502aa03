// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/layers/drop_path.h"

#include <gmock/gmock.h>

#include "models/backbones/model_options.h"
#include "models/counting/memory.h"
#include "tests/models/autocast.h"
#include "tests/models/small_models.h"
#include "tests/models/xcit_of_blocks.h"

namespace abl::models {
namespace {

TEST(DropPath, KeepsTheExpectationOfTheBranch) {
  torch::manual_seed(1);
  const auto branch = torch::full({100'000, 1, 2}, 3.0);
  const auto kept = drop_path(branch, 0.3, /*is_training=*/true);
  // one image: mean 3, variance 9 · 0.3 / 0.7; of 100,000 the mean deviates by 0.0062
  EXPECT_NEAR(kept.mean().item<double>(), 3.0, 0.025);
  EXPECT_NEAR((kept == 0).to(torch::kFloat).mean().item<double>(), 0.3, 0.006);
}

TEST(DropPath, DropsWholeImages) {
  torch::manual_seed(2);
  const auto branch = torch::rand({64, 5, 7, 3}) + 1;
  const auto kept = drop_path(branch, 0.5, true);
  int dropped = 0;
  for (std::int64_t image = 0; image < 64; ++image) {
    if (kept[image].equal(torch::zeros({5, 7, 3})))
      ++dropped;
    else
      EXPECT_TRUE(kept[image].equal(branch[image] * 2)) << image;
  }
  EXPECT_GT(dropped, 15);
  EXPECT_LT(dropped, 49);
}

TEST(DropPath, DrawsAsTimmDoes) {  // one Bernoulli number for each image, of the branch's type
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto branch = torch::rand({16, 4, 3}).to(type);
    torch::manual_seed(3);
    const auto kept = drop_path(branch, 0.4, true);
    torch::manual_seed(3);
    const auto expected = branch * torch::empty({16, 1, 1}, type).bernoulli_(0.6).div_(0.6);
    EXPECT_TRUE(kept.equal(expected));
    EXPECT_EQ(kept.scalar_type(), type);
  }
}

TEST(DropPath, IsTheBranchItselfInEvaluationAndAtRate0) {
  const auto branch = torch::rand({4, 3});
  const auto before = at::detail::getDefaultCPUGenerator().get_state();
  EXPECT_TRUE(drop_path(branch, 0.5, /*is_training=*/false).is_same(branch));
  EXPECT_TRUE(drop_path(branch, 0, /*is_training=*/true).is_same(branch));
  EXPECT_TRUE(at::detail::getDefaultCPUGenerator().get_state().equal(before)) << "a number was drawn";
}

TEST(DropPath, GradientsFlowThroughKeptBranchesAlone) {
  torch::manual_seed(4);
  const auto branch = torch::rand({32, 6}).requires_grad_();
  const auto kept = drop_path(branch, 0.5, true);
  kept.sum().backward();
  const auto is_kept = (kept.detach() != 0).to(torch::kFloat);
  EXPECT_TRUE(branch.grad().equal(is_kept * 2));
  EXPECT_LT(is_kept.sum().item<double>(), 32 * 6);
}

TEST(DropPathRates, GrowLinearlyAsTimms) {
  // timm 1.0: calculate_drop_path_rates(0.1, 12), which computes in 32 bits
  const std::vector<double> timm{0.0,
                                 0.00909090880304575,
                                 0.0181818176060915,
                                 0.027272727340459824,
                                 0.036363635212183,
                                 0.045454543083906174,
                                 0.054545458406209946,
                                 0.06363636255264282,
                                 0.0727272778749466,
                                 0.08181818574666977,
                                 0.09090909361839294,
                                 0.10000000149011612};
  EXPECT_THAT(drop_rates({.rate = 0.1}, 12), testing::Pointwise(testing::DoubleNear(1e-8), timm));
  EXPECT_THAT(drop_rates({.rate = 0.1}, 1), testing::ElementsAre(0.0));
  EXPECT_TRUE(drop_rates({.rate = 0.1}, 0).empty());
}

TEST(DropPathRates, AreConstantByXcitsRule) {
  EXPECT_THAT(drop_rates({.rate = 0.05, .rule = DropPathRule::kConstant}, 3),
              testing::ElementsAre(0.05, 0.05, 0.05));
  EXPECT_EQ(XcitOptions{}.drop_path.rule, DropPathRule::kConstant);
}

TEST(DropPathRates, AreProbabilitiesBelow1) {
  EXPECT_THROW(drop_rates({.rate = 1}, 12), c10::ValueError);
  EXPECT_THROW(drop_rates({.rate = -0.1}, 12), c10::ValueError);
  for (const auto& [name, options] : small_models())
    EXPECT_THROW(build(with_drop_path(options, 1.5), torch::kMeta), c10::ValueError) << name;
}

/// A model with fixed parameters, none of which hides a branch.
std::shared_ptr<Classifier> seeded(const ModelOptions& options) {
  torch::manual_seed(5);
  const auto model = build(options);
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model->parameters())
    if (parameter.dim() == 1) parameter.uniform_(0.5, 1.5);
  return model;
}

TEST(DropPathOfModels, ActsInTrainingAloneInEveryFamily) {
  for (const auto& [name, options] : small_models()) {
    const auto plain = seeded(options), dropping = seeded(with_drop_path(options, 0.6));
    const auto images = torch::randn({8, 3, 64, 64});
    const auto run = [&](const std::shared_ptr<Classifier>& model) {
      torch::manual_seed(6);
      return model->forward(images);
    };
    plain->eval(), dropping->eval();
    EXPECT_TRUE(run(plain).equal(run(dropping))) << name;
    plain->train(), dropping->train();
    EXPECT_FALSE(run(plain).equal(run(dropping))) << name;
  }
}

TEST(DropPathOfModels, LeavesClassAttentionAlone) {  // as XCiT's release
  const auto options = xcit_of_blocks({});
  const auto plain = seeded(options), dropping = seeded(with_drop_path(options, 0.6));
  const auto images = torch::randn({8, 3, 64, 64});
  EXPECT_TRUE(plain->forward(images).equal(dropping->forward(images)));
}

TEST(DropPathOfModels, HasAPredictedMemoryInEveryFamily) {
  for (const auto precision : {Precision::kFloat, Precision::kBFloat16})
    for (const auto& [name, options] : small_models()) {
      const StepOptions step{.batch = 4, .image_size = 64, .precision = precision};
      const auto predict = [&](const ModelOptions& chosen) {
        return predict_step_memory([&](torch::Device device) { return build(chosen, device); }, step).peak;
      };
      const auto with = predict(with_drop_path(options, 0.3)), without = predict(options);
      EXPECT_NEAR(static_cast<double>(with) / static_cast<double>(without), 1, 0.1) << name;
    }
}

TEST(DropPathOfModels, TrainsUnderAutocast) {
  for (const auto& [name, options] : small_models()) {
    const auto model = build(with_drop_path(options, 0.3));
    torch::Tensor logits;
    {
      const Autocast lowered;
      logits = model->forward(torch::randn({4, 3, 64, 64}));
    }
    logits.to(torch::kFloat).square().sum().backward();
    for (const auto& parameter : model->parameters())
      EXPECT_TRUE(!parameter.grad().defined() || parameter.grad().isfinite().all().item<bool>()) << name;
  }
}

}  // namespace
}  // namespace abl::models
