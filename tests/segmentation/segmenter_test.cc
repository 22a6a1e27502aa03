// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/segmenter.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/counting/meta_kernels.h"
#include "models/dense/trunk_maps.h"
#include "models/weights/layers_of_parameters.h"
#include "models/weights/weight_decay.h"
#include "tests/segmentation/backbones.h"

namespace abl::models {
namespace {

std::vector<std::pair<std::string, SegmenterOptions>> heads() {
  const auto setr = [](SetrDecoder decoder) {
    return SegmenterOptions{.classes = 5,
                            .head = SetrOptions{.decoder = decoder, .channels = 8, .mla_channels = 4}};
  };
  return {{"semantic-fpn", {.classes = 5, .head = SemanticFpnOptions{.channels = 8}}},
          {"uper-net", {.classes = 5, .head = UperNetOptions{.channels = 8, .auxiliary = {.channels = 4}}}},
          {"setr-naive", setr(SetrDecoder::kNaive)},
          {"setr-pup", setr(SetrDecoder::kPup)},
          {"setr-mla", setr(SetrDecoder::kMla)}};
}

Segmenter segmenter(const std::string& backbone, const SegmenterOptions& options) {
  torch::manual_seed(1);
  const auto scale =
      std::holds_alternative<SetrOptions>(options.head) ? MapScale::kPatch : MapScale::kPyramid;
  return Segmenter{build_feature_maps(backbone_named(backbone), {.scale = scale}), options};
}

TEST(Segmenter, OfEveryHeadTrainsEveryParameterOnEveryKindOfBackbone) {
  const auto labels = torch::randint(0, 5, {2, 64, 64}, torch::kLong);
  for (const auto& [name, options] : heads())
    for (const auto* backbone : {"xcit", "simple-vit of mean shift", "swin of charts"}) {
      if (name.starts_with("setr") && std::string{backbone}.starts_with("swin")) continue;
      auto model = segmenter(backbone, options);
      const auto losses = segmentation_losses(model->answer(torch::randn({2, 3, 64, 64})), labels);
      losses.total.backward();
      for (const auto& parameter : model->named_parameters())
        EXPECT_TRUE(parameter.value().grad().defined())
            << name << " on " << backbone << ": " << parameter.key();
    }
}

TEST(Segmenter, LayersAreThoseOfItsBackboneAndAllElseIsTheHead) {
  for (const auto* backbone : {"xcit", "simple-vit of mean shift", "swin of charts"}) {
    const auto layers = layers_of_parameters(*segmenter(backbone, heads()[0].second));
    int last = 0;
    for (const auto& [name, layer] : layers) last = std::max(last, layer);
    EXPECT_GT(last, 3) << backbone;
    for (const auto& [name, layer] : layers) {
      const bool is_of_the_trunk =
          name.starts_with("backbone.trunk.") && !name.starts_with("backbone.trunk.norm");
      EXPECT_EQ(layer < last, is_of_the_trunk) << backbone << ": " << name;
      if (name.starts_with("backbone.trunk.patch_embed")) {
        EXPECT_EQ(layer, 0) << backbone << ": " << name;
      }
    }
  }
}

TEST(Segmenter, WeighsWhatLearnsBesideByTwoFifths) {
  auto model = segmenter("xcit", heads()[1].second);
  const auto losses = segmentation_losses(model->answer(torch::randn({2, 3, 64, 64})),
                                          torch::zeros({2, 64, 64}, torch::kLong));
  ASSERT_EQ(losses.auxiliary.size(), 1);
  EXPECT_FLOAT_EQ(losses.total.item<float>(),
                  losses.decode.item<float>() + 0.4F * losses.auxiliary[0].item<float>());
}

TEST(Segmenter, StartsWithLogitsNearZero) {
  for (const auto& [name, options] : heads()) {
    auto model = segmenter("xcit", options);
    const torch::NoGradGuard no_grad;
    EXPECT_LT(model(torch::randn({2, 3, 64, 64})).abs().max().item<float>(), 1) << name;
  }
}

/// A channel goes as a whole, or not at all.
TEST(Segmenter, DropsWholeChannelsInTrainingAlone) {
  auto model = segmenter("xcit", {.classes = 5, .head = SemanticFpnOptions{.channels = 8, .dropout = 0.5}});
  const torch::NoGradGuard no_grad;
  const auto images = torch::randn({2, 3, 64, 64});
  model->eval();
  EXPECT_TRUE(model(images).equal(model(images)));
  model->train();
  EXPECT_FALSE(model(images).equal(model(images)));
  auto parameters = model->named_parameters();
  parameters["decode_head.conv_seg.weight"].zero_()[0][0][0][0] = 1;  // class 0 is channel 0
  std::set<bool> seen;
  for (int draw = 0; draw < 12; ++draw) {
    const auto channel = model(images)[0][0];
    const bool is_gone = channel.abs().max().item<float>() == 0;
    seen.insert(is_gone);
  }
  EXPECT_EQ(seen.size(), 2);
}

/// As the release's settings for dense tasks say it, and as for classification.
TEST(Segmenter, SparesNormsTokensAndPositionsFromWeightDecay) {
  const auto spared = undecayed(*segmenter("vit", heads()[2].second));
  for (const auto* name : {"backbone.trunk.cls_token", "backbone.trunk.pos_embed", "decode_head.norm.weight",
                           "backbone.trunk.blocks.0.norm1.weight", "decode_head.up_convs.0.0.bn.weight"})
    EXPECT_TRUE(spared.contains(name)) << name;
  for (const auto* name : {"backbone.trunk.patch_embed.proj.weight", "decode_head.conv_seg.weight"})
    EXPECT_FALSE(spared.contains(name)) << name;
}

TEST(Segmenter, TakesImagesThatCoarseMapsDoNotDivide) {
  auto model = segmenter("xcit", heads()[0].second);
  model->eval();
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model(torch::randn({1, 3, 48, 112})).sizes(), (torch::IntArrayRef{1, 5, 12, 28}));
}

TEST(Segmenter, RefusesHeadsThatDoNotFit) {
  EXPECT_THROW(segmenter("xcit", {.classes = 0}), c10::ValueError);
  EXPECT_THROW(segmenter("xcit", {.head = SemanticFpnOptions{.dropout = 1}}), c10::ValueError);
  EXPECT_THROW(segmenter("xcit", {.head = UperNetOptions{.auxiliary = {.level = 4}}}), c10::ValueError);
  EXPECT_THROW(segmenter("xcit", {.head = UperNetOptions{.pool_scales = {0}}}), c10::ValueError);
  EXPECT_THROW(segmenter("swin", {.head = SetrOptions{}}), c10::ValueError) << "maps of four strides";
  EXPECT_THROW((SemanticFpnHeadImpl{{}, {8, 8}, {4, 12}, 5}), c10::ValueError) << "strides of no doubling";
}

TEST(Segmenter, TakesAStepOnTheMetaDevice) {
  use_meta_kernels();
  for (const auto& [name, options] : heads()) {
    const auto scale =
        std::holds_alternative<SetrOptions>(options.head) ? MapScale::kPatch : MapScale::kPyramid;
    Segmenter model{build_feature_maps(backbone_named("xcit"), {.scale = scale}, torch::kMeta), options,
                    torch::kMeta};
    const auto answers = model->answer(torch::empty({2, 3, 64, 64}, torch::kMeta));
    const auto losses = segmentation_losses(
        answers, torch::empty({2, 64, 64}, torch::device(torch::kMeta).dtype(torch::kLong)));
    losses.total.backward();
    for (const auto& parameter : model->named_parameters())
      EXPECT_TRUE(parameter.value().grad().defined()) << name << ": " << parameter.key();
  }
}

}  // namespace
}  // namespace abl::models
