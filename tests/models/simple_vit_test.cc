// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "models/backbones/simple_vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/backbones/model_options.h"
#include "tests/models/bfloat16.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

constexpr AttentionChoice (*kSimpleVitMeanShift)() = [] {
  return AttentionChoice{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};
};

SimpleVitOptions small_simple_vit(std::vector<AttentionChoice> attention) {
  return {.image_size = 16,
          .patch = 4,
          .classes = 5,
          .dim = 16,
          .depth = static_cast<std::int64_t>(attention.size()),
          .heads = 2,
          .dim_head = 8,
          .mlp_dim = 32,
          .attention = std::move(attention)};
}

const SmallModel kSmallSimpleVit{
    "simple-vit", SimpleVitOptions{.image_size = 64,
                                   .patch = 8,
                                   .classes = 10,
                                   .dim = 96,
                                   .depth = 3,
                                   .heads = 3,
                                   .dim_head = 32,
                                   .mlp_dim = 192,
                                   .attention = {{}, kSimpleVitMeanShift(), {.kernel = Kernel::kNone}}}};

std::vector<std::string> names_of(const torch::nn::Module& model) { return model.named_parameters().keys(); }

TEST(SimpleVit, GivesOneLogitForEachClassAndTrainsEveryParameter) {
  torch::manual_seed(1);
  const auto model = build(small_simple_vit({{}, kSimpleVitMeanShift(), {.kernel = Kernel::kNone}}));
  const auto logits = model->forward(torch::randn({3, 3, 16, 16}));
  ASSERT_EQ(logits.sizes(), (torch::IntArrayRef{3, 5}));
  torch::cross_entropy_loss(logits, torch::tensor({0, 1, 2})).backward();
  for (const auto& parameter : model->named_parameters())
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
}

TEST(SimpleVit, NamesItsParametersAsTheReferenceDoes) {
  SimpleVit model{small_simple_vit({kSimpleVitMeanShift()})};
  EXPECT_THAT(names_of(*model),
              ::testing::UnorderedElementsAre(
                  "embed_norm1.weight", "embed_norm1.bias", "embed.weight", "embed.bias",
                  "embed_norm2.weight", "embed_norm2.bias", "attn.0.norm.weight", "attn.0.norm.bias",
                  "attn.0.mat.Q", "attn.0.mat.K", "attn.0.mat.V", "attn.0.mat.P", "attn.0.mat.W",
                  "ff.0.norm.weight", "ff.0.norm.bias", "ff.0.fc1.weight", "ff.0.fc1.bias", "ff.0.fc2.weight",
                  "ff.0.fc2.bias", "head_norm.weight", "head_norm.bias", "head.weight", "head.bias"));
}

TEST(SimpleVit, ALayerWithoutAttentionHasNoParametersOfOneAndKeepsItsMlp) {
  SimpleVit model{small_simple_vit({{}, {.kernel = Kernel::kNone}, {}})};
  EXPECT_TRUE(model->attention(1).is_empty());
  int attention = 0, mlp = 0;
  for (const auto& name : names_of(*model)) {
    attention += name.rfind("attn.1.", 0) == 0;
    mlp += name.rfind("ff.1.", 0) == 0;
  }
  EXPECT_EQ(attention, 0);
  EXPECT_EQ(mlp, 6);
  const auto x = torch::randn({2, 16, 16});
  EXPECT_TRUE(torch::equal(model->layer(1, x), x + model->feed_forward(1)(x)));
  EXPECT_FALSE(torch::allclose(model->layer(0, x), x + model->feed_forward(0)(x)));
}

TEST(SimpleVit, WithoutAttentionNoTokenSeesAnother) {
  torch::manual_seed(2);
  const auto x = torch::randn({1, 16, 16});
  auto changed = x.clone();
  changed.select(1, 3).copy_(torch::randn({1, 16}));
  const auto others_differ = [&](const AttentionChoice& choice) {
    SimpleVit model{small_simple_vit({choice})};
    const auto difference = (model->layer(0, changed) - model->layer(0, x)).abs().sum(-1);  // [1, N]
    return difference.sum().item<double>() - difference[0][3].item<double>() > 1e-4;
  };
  EXPECT_FALSE(others_differ({.kernel = Kernel::kNone}));
  EXPECT_TRUE(others_differ({}));
  EXPECT_TRUE(others_differ(kSimpleVitMeanShift()));
}

TEST(SimpleVit, StartsFromTheSeedAlone) {
  const auto logits = [](std::uint64_t seed) {
    torch::manual_seed(seed);
    SimpleVit model{small_simple_vit({kSimpleVitMeanShift(), {}})};
    return model(torch::ones({1, 3, 16, 16}));
  };
  EXPECT_TRUE(torch::equal(logits(11), logits(11)));
  EXPECT_FALSE(torch::allclose(logits(11), logits(12)));
}

TEST(SimpleVit, OnTheMetaDeviceItNeedsNeitherMemoryNorRandomNumbers) {
  torch::manual_seed(1);
  const auto before = torch::randn({4});
  torch::manual_seed(1);
  auto huge = small_simple_vit(std::vector<AttentionChoice>(96, kSimpleVitMeanShift()));
  huge.dim = 12288, huge.heads = 192, huge.dim_head = 64,
  huge.mlp_dim = 4 * 12288;  // two hundred billion parameters
  const auto model = build(huge, torch::kMeta);
  for (const auto& parameter : model->parameters()) ASSERT_TRUE(parameter.is_meta());
  EXPECT_TRUE(torch::equal(torch::randn({4}), before));
}

TEST(SimpleVit, TrainsInBfloat16UnderAutocast) {
  torch::manual_seed(3);
  SimpleVit model{small_simple_vit({kSimpleVitMeanShift(), {}})};
  const auto images = torch::randn({2, 3, 16, 16});
  expect_close_in_bfloat16(*model, images);
}

TEST(SimpleVit, RefusesOptionsThatDoNotFitTogether) {
  const auto refused = [](auto&& change) {
    auto options = small_simple_vit({{}, {}});
    change(options);
    EXPECT_THROW(build(options, torch::kMeta), c10::ValueError);
  };
  refused([](auto& options) { options.patch = 5; });
  refused([](auto& options) { options.depth = 3; });
  refused([](auto& options) { options.classes = 0; });
  refused([](auto& options) { options.dim = 18; });
  refused([](auto& options) { options.attention[1].groups = 3; });
}

}  // namespace
}  // namespace abl::models
