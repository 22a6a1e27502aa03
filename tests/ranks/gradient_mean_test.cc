// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "worker/trainer/ranks/gradient_mean.h"

#include <gtest/gtest.h>

#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "tests/ranks/threads_as_ranks.h"

namespace abl::ranks {
namespace {

/// y = x w; `unused` is a parameter that no loss depends on.
struct Line : torch::nn::Module {
  Line() {
    w = register_parameter("w", torch::tensor({{1.0f}, {2.0f}}));
    unused = register_parameter("unused", torch::ones({3}));
  }
  torch::Tensor forward(const torch::Tensor& x) const { return x.matmul(w); }
  torch::Tensor w, unused;
};

torch::Tensor inputs(int rank) {
  return torch::arange(8, torch::kFloat32).view({4, 2}) * static_cast<float>(rank + 1);
}

/// What one rank would have: the mean of the gradients.
torch::Tensor expected_gradient(int ranks) {
  const Line model;
  for (int rank = 0; rank < ranks; ++rank) (model.forward(inputs(rank)).square().mean() / ranks).backward();
  return model.w.grad();
}

std::shared_ptr<RankGroup> not_owned(RankGroup& group) { return {std::shared_ptr<void>{}, &group}; }

TEST(GradientMeanTest, GradientsAreTheMeansOverTheRanks) {
  as_ranks(3, [](RankGroup& group) {
    const Line model;
    GradientMean mean{model, not_owned(group)};
    for (int step = 0; step < 3; ++step) {
      model.w.mutable_grad() = torch::Tensor{};
      mean.backward(model.forward(inputs(group.rank())).square().mean(), /*last=*/true);
      EXPECT_TRUE(torch::allclose(model.w.grad(), expected_gradient(3)));
    }
  });
}

TEST(GradientMeanTest, AParameterThatNoLossDependsOnGetsNoGradient) {
  as_ranks(2, [](RankGroup& group) {
    const Line model;
    GradientMean mean{model, not_owned(group)};
    for (int step = 0; step < 3; ++step) {
      model.w.mutable_grad() = torch::Tensor{};
      mean.backward(model.forward(inputs(group.rank())).sum(), true);
      EXPECT_TRUE(model.w.grad().defined());
      EXPECT_FALSE(model.unused.grad().defined());
    }
  });
}

TEST(GradientMeanTest, PartsOfAStepAddUpBeforeTheyTravel) {
  as_ranks(2, [](RankGroup& group) {
    const Line model;
    GradientMean mean{model, not_owned(group)};
    const auto x = inputs(group.rank());
    for (int step = 0; step < 3; ++step) {
      model.w.mutable_grad() = torch::Tensor{};
      mean.backward(model.forward(x.narrow(0, 0, 2)).square().mean() / 2, /*last=*/false);
      mean.backward(model.forward(x.narrow(0, 2, 2)).square().mean() / 2, /*last=*/true);
      EXPECT_TRUE(torch::allclose(model.w.grad(), expected_gradient(2)));
    }
  });
}

TEST(GradientMeanTest, RecomputedBlocksHaveTheirPartInIt) {
  const models::SimpleVitOptions options{
      .image_size = 64,
      .patch = 8,
      .classes = 10,
      .dim = 96,
      .depth = 3,
      .heads = 3,
      .dim_head = 32,
      .mlp_dim = 192,
      .attention = {{},
                    {.kernel = models::Kernel::kGaussian, .probe = models::Probe::kInside, .share = "QKVPW"},
                    {.kernel = models::Kernel::kNone}}};
  torch::manual_seed(1);
  const auto images = torch::randn({4, 3, 64, 64});
  const auto whole = models::build(options);
  whole->forward(images).square().mean().backward();
  const auto state = [](models::Classifier& model) { return model.named_parameters(); };
  as_ranks(2, [&](RankGroup& group) {
    const auto model = models::build(models::with_checkpointing(options, 2));
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : state(*whole)) state(*model)[parameter.key()].copy_(parameter.value());
    const torch::AutoGradMode with_gradients{true};
    GradientMean mean{*model, not_owned(group)};
    for (int step = 0; step < 3; ++step) {
      for (auto& parameter : model->parameters()) parameter.mutable_grad() = torch::Tensor{};
      mean.backward(model->forward(images.narrow(0, 2 * group.rank(), 2)).square().mean(), true);
      for (const auto& parameter : state(*whole))
        EXPECT_TRUE(
            torch::allclose(state(*model)[parameter.key()].grad(), parameter.value().grad(), 1e-3, 1e-6))
            << parameter.key() << ", step " << step;
    }
  });
}

}  // namespace
}  // namespace abl::ranks
