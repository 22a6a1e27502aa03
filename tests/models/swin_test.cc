// SPDX-License-Identifier: Apache-2.0
#include <torch/nn/module.h>
#include <torch/utils.h>

#include "models/backbones/swin.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/backbones/swin_v2.h"
#include "models/counting/parameters.h"
#include "probes/features.h"
#include "tests/models/bfloat16.h"
#include "tests/models/small_models.h"

namespace abl::models {
namespace {

constexpr AttentionChoice (*kSwinMeanShift)() = [] {
  return AttentionChoice{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};
};

const SmallModel kSmallSwin{
    "swin", SwinOptions{.image_size = 64,
                        .classes = 10,
                        .dim = 48,
                        .depths = {2, 2},
                        .heads = {3, 6},
                        .window = 4,
                        .attention = {QkvChoice{}, QkvChoice{}, kSwinMeanShift(), QkvChoice{}}}};

const SmallModel kSmallSwinV2{"swin-v2", SwinV2Options{.image_size = 64,
                                                       .classes = 10,
                                                       .dim = 48,
                                                       .depths = {2, 2},
                                                       .heads = {3, 6},
                                                       .window = 4,
                                                       .attention = {4, QkvChoice{}}}};

/// Swin-T, or Swin-S with 18 blocks in the third stage.
SwinOptions imagenet(const WindowAttentionChoice& everywhere, std::int64_t third = 6) {
  SwinOptions options;
  options.depths[2] = third;
  options.attention.assign(static_cast<std::size_t>(6 + third), everywhere);
  return options;
}

SwinV2Options version_2() {
  SwinV2Options options;
  options.attention.assign(12, QkvChoice{});
  return options;
}

/// SwinV2-B of windows of 16, from weights of 12.
SwinV2Options version_2_b() {
  return {.dim = 128,
          .depths = {2, 2, 18, 2},
          .heads = {4, 8, 16, 32},
          .window = 16,
          .pretrained_window = {12, 12, 12, 6},
          .attention = std::vector<CosineAttentionChoice>(24, QkvChoice{})};
}

std::int64_t parameters_in(const torch::nn::Module& model) {
  std::int64_t sum = 0;
  for (const auto& entry : list_parameters(model)) sum += entry.elements;
  return sum;
}

std::int64_t parameters_in(const SwinOptions& options) { return parameters_in(*Swin{options, torch::kMeta}); }

/// The weights of linear layers and convolutions in millions, as MSF prints them.
std::string weights_of(const SwinOptions& options) {
  const Swin model{options, torch::kMeta};
  std::int64_t sum = 0;
  for (const auto& entry : list_parameters(*model))
    if (entry.is_weight) sum += entry.elements;
  return fmt::format("{}.{:02}", (sum + 5'000) / 1'000'000, (sum + 5'000) / 10'000 % 100);
}

TEST(SwinCounts, AreThoseOfTimm) {
  EXPECT_EQ(parameters_in(imagenet(QkvChoice{})), 28'288'354);
  EXPECT_EQ(parameters_in(imagenet(QkvChoice{}, 18)), 49'606'258);
  EXPECT_EQ(parameters_in(imagenet(AttentionChoice{})), 28'288'354) << "separate matrices";
  EXPECT_EQ(parameters_in(*SwinV2{version_2(), torch::kMeta}), 28'347'154);
  EXPECT_EQ(parameters_in(*SwinV2{version_2_b(), torch::kMeta}), 87'918'816);
}

TEST(SwinCounts, PrintTheWeightsOfMsfTable6) {
  auto grouped = kSwinMeanShift();
  grouped.groups = 2;
  EXPECT_EQ(weights_of(imagenet(QkvChoice{})), "28.20");
  EXPECT_EQ(weights_of(imagenet(kSwinMeanShift())), "30.36");
  EXPECT_EQ(weights_of(imagenet(grouped)), "26.04");
  EXPECT_EQ(weights_of(imagenet(QkvChoice{}, 18)), "49.43");
  EXPECT_EQ(weights_of(imagenet(kSwinMeanShift(), 18)), "53.36");
  EXPECT_EQ(weights_of(imagenet(grouped, 18)), "45.51");
}

TEST(SwinCounts, PrintTheParametersOfTheManifoldKey) {
  const auto millions = [](KeyMethod method) {
    return (parameters_in(imagenet(KeyChoice{.method = method})) + 500'000) / 1'000'000;
  };
  EXPECT_EQ(millions(KeyMethod::kSpatialK), 61);
  EXPECT_EQ(millions(KeyMethod::kKua), 61);
  EXPECT_EQ(millions(KeyMethod::kSimpleK), 44);
  EXPECT_EQ(millions(KeyMethod::kVanillaK), 44);
}

SwinOptions small_swin(std::vector<WindowAttentionChoice> attention) {
  return {.image_size = 32,
          .patch = 4,
          .classes = 5,
          .dim = 16,
          .depths = {static_cast<std::int64_t>(attention.size()) - 1, 1},
          .heads = {2, 4},
          .window = 4,
          .mlp_ratio = 2,
          .attention = std::move(attention)};
}

SwinV2Options small_version_2(std::vector<CosineAttentionChoice> attention) {
  return {.image_size = 32,
          .classes = 5,
          .dim = 16,
          .depths = {static_cast<std::int64_t>(attention.size())},
          .heads = {2},
          .window = 4,
          .attention = std::move(attention)};
}

void expect_swin_gradients(Classifier& model) {
  torch::cross_entropy_loss(model.forward(torch::randn({3, 3, 32, 32})), torch::tensor({0, 1, 2})).backward();
  for (const auto& parameter : model.named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_GT(parameter.value().grad().abs().max().item<double>(), 0) << parameter.key();
  }
}

TEST(Swin, TrainsEveryParameterOfEveryKindOfAttention) {
  torch::manual_seed(1);
  SwinImpl model{small_swin({QkvChoice{}, kSwinMeanShift(), AttentionChoice{.kernel = Kernel::kNone},
                             KeyChoice{.method = KeyMethod::kSpatialK, .charts = 2}, AttentionChoice{}})};
  expect_swin_gradients(model);
}

TEST(Swin, ABlockWithoutAttentionHasNoParametersOfOne) {
  SwinImpl model{small_swin({QkvChoice{}, AttentionChoice{.kernel = Kernel::kNone}, QkvChoice{}})};
  for (const auto& name : model.named_parameters().keys())
    EXPECT_FALSE(name.starts_with("layers.0.blocks.1.attn") || name.starts_with("layers.0.blocks.1.norm1"))
        << name;
}

TEST(Swin, TrainsInBfloat16UnderAutocast) {
  torch::manual_seed(2);
  const auto images = torch::randn({2, 3, 32, 32});
  auto grouped = kSwinMeanShift();
  grouped.groups = 2;
  SwinImpl first{small_swin(
      {QkvChoice{}, grouped, KeyChoice{.method = KeyMethod::kSpatialK, .charts = 2}, kSwinMeanShift()})};
  expect_close_in_bfloat16(first, images);
  SwinV2Impl second{small_version_2({QkvChoice{}, KeyChoice{.method = KeyMethod::kSpatialK, .charts = 2}})};
  expect_close_in_bfloat16(second, images);
}

TEST(Swin, OfVersion2StartsWithEveryBlockAsTheIdentity) {
  torch::manual_seed(3);
  SwinV2Impl model{small_version_2({QkvChoice{}, KeyChoice{.method = KeyMethod::kSpatialK}})};
  std::map<std::string, torch::Tensor> seen{{"patch_embed", {}}, {"layers.0", {}}};
  const probes::FeatureTap tap{model, seen};
  model.forward(torch::randn({2, 3, 32, 32}));
  EXPECT_TRUE(torch::equal(seen.at("layers.0"), seen.at("patch_embed")));
}

TEST(Swin, RefusesOptionsThatDoNotFitTogether) {
  const auto refused = [](auto&& change) {
    auto options = small_swin({QkvChoice{}, QkvChoice{}, QkvChoice{}});
    change(options);
    EXPECT_THROW((SwinImpl{options, torch::kMeta}), c10::ValueError);
  };
  refused([](auto& options) { options.image_size = 30; });
  refused([](auto& options) { options.classes = 0; });
  refused([](auto& options) { options.window = 0; });
  refused([](auto& options) { options.heads = {2}; });
  refused([](auto& options) { options.heads = {3, 4}; });
  refused([](auto& options) { options.depths = {}; });
  refused([](auto& options) { options.attention.pop_back(); });
  refused([](auto& options) { options.attention[1] = AttentionChoice{.groups = 3}; });
  refused(
      [](auto& options) { options.attention[2] = KeyChoice{.method = KeyMethod::kSpatialK, .charts = 0}; });
  EXPECT_THROW((SwinV2Impl{{.depths = {2, 0}, .heads = {3, 6}, .attention = {2, QkvChoice{}}}, torch::kMeta}),
               c10::ValueError);
  SwinImpl model{small_swin({QkvChoice{}, QkvChoice{}})};
  EXPECT_THROW(model.forward(torch::zeros({1, 3, 40, 40})), c10::ValueError);
}

}  // namespace
}  // namespace abl::models
