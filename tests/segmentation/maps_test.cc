// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/dense/trunk_maps.h"
#include "tests/segmentation/backbones.h"

namespace abl::models {
namespace {

/// A Swin's own maps are a pyramid, whatever is asked for.
std::shared_ptr<FeatureMaps> maps_of(const ModelOptions& model, MapScale scale = MapScale::kPatch) {
  torch::manual_seed(1);
  return build_feature_maps(model, {.scale = scale});
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::ValueError& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

TEST(UsualLayers, AreThoseOfTheReleasesAndOfSetr) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(usual_layers(12, MapScale::kPyramid), (Layers{4, 6, 8, 12}));
  EXPECT_EQ(usual_layers(24, MapScale::kPyramid), (Layers{8, 12, 16, 24}));
  EXPECT_EQ(usual_layers(24, MapScale::kPatch), (Layers{6, 12, 18, 24}));
  EXPECT_EQ(usual_layers(12, MapScale::kPatch), (Layers{3, 6, 9, 12}));
  for (const auto scale : {MapScale::kPyramid, MapScale::kPatch})
    for (std::int64_t depth = 4; depth < 30; ++depth) check_layers(usual_layers(depth, scale), depth);
  EXPECT_THROW(usual_layers(3, MapScale::kPatch), c10::ValueError);
}

TEST(FeatureMaps, OfEveryBackboneHaveItsChannelsAndStrides) {
  for (const auto& [name, model] : backbones()) {
    const auto backbone = maps_of(model);
    const auto maps = backbone->maps(torch::randn({1, 3, 64, 64}));
    ASSERT_EQ(maps.size(), 4) << name;
    for (std::size_t level = 0; level < maps.size(); ++level) {
      const auto side = 64 / backbone->strides().at(level);
      EXPECT_EQ(maps[level].sizes(), (torch::IntArrayRef{1, backbone->channels().at(level), side, side}))
          << name;
    }
  }
}

TEST(FeatureMaps, OfAnyAttentionReachEveryParameter) {
  for (const auto& [name, model] : backbones())
    for (const auto scale : {MapScale::kPatch, MapScale::kPyramid}) {
      const auto backbone = maps_of(model, scale);
      auto sum = torch::zeros({});
      for (const auto& map : backbone->maps(torch::randn({2, 3, 64, 64}))) sum = sum + map.square().sum();
      sum.backward();
      for (const auto& parameter : dynamic_cast<torch::nn::Module&>(*backbone).named_parameters())
        EXPECT_TRUE(parameter.value().grad().defined()) << name << ": " << parameter.key();
    }
}

TEST(FeatureMaps, OfOtherSizesAreTakenWhereTokensMayBeAnyNumber) {
  for (const auto& [name, model] : backbones()) {
    const auto backbone = maps_of(model);
    const auto images = torch::randn({1, 3, 96, 80});
    const auto refusal = refusal_of([&] { backbone->maps(images); });
    const bool holds_for_one = name == "key-vit of charts";
    EXPECT_EQ(refusal, holds_for_one ? "images of 96 x 80 pixels for a model of 64 x 64" : "accepted")
        << name;
    EXPECT_NE(refusal_of([&] { backbone->maps(torch::randn({1, 3, 90, 80})); }), "accepted") << name;
  }
}

/// What of a classification's weights goes into a backbone: all but what its logits alone need.
TEST(FeatureMaps, HaveTheNamesOfTheClassifierWithoutItsHead) {
  for (const auto& [name, model] : backbones()) {
    const auto whole = build(model, torch::kMeta);
    std::set<std::string> names;
    for (const auto& parameter : whole->named_parameters()) names.insert(parameter.key());
    std::size_t own = 0;
    for (const auto& parameter : build(without_head(model), torch::kMeta)->named_parameters()) {
      const bool is_stage_norm = name.starts_with("swin") && parameter.key().starts_with("norm");
      EXPECT_TRUE(is_stage_norm || names.contains(parameter.key())) << name << ": " << parameter.key();
      own += !is_stage_norm;
    }
    EXPECT_LT(own, names.size()) << name;
  }
}

TEST(FeatureMaps, OfAModelWithoutAHeadAreNoLogits) {
  for (const auto& [name, model] : backbones()) {
    const auto trunk = build(without_head(model));
    EXPECT_EQ(refusal_of([&] {
                trunk->forward(torch::randn({1, 3, 64, 64}));
              }),
              "this model has no head: it computes feature maps, not logits")
        << name;
  }
}

/// Layers behind the last map do not run, and the head does not change what is before it.
TEST(FeatureMaps, AreThoseThatTheClassifierHasToo) {
  for (const auto& [name, model] : backbones()) {
    if (name.starts_with("swin")) continue;  // the norms of its stages are its backbone's alone
    torch::manual_seed(2);
    const auto whole = build(model);
    const auto trunk = build(without_head(model));
    const torch::NoGradGuard no_grad;
    auto from = whole->named_parameters();
    for (auto& parameter : trunk->named_parameters()) parameter.value().copy_(from[parameter.key()]);
    const auto images = torch::randn({1, 3, 64, 64});
    whole->eval(), trunk->eval();
    const auto of_whole = dynamic_cast<Trunk&>(*whole).maps_after({1, 3}, images);
    const auto of_trunk = dynamic_cast<Trunk&>(*trunk).maps_after({1, 3}, images);
    for (std::size_t i = 0; i < of_whole.size(); ++i) EXPECT_TRUE(of_whole[i].equal(of_trunk[i])) << name;
  }
}

TEST(FeatureMaps, OfLayersThatAreNotThereAreRefused) {
  const auto model = backbone_named("xcit");
  EXPECT_EQ(refusal_of([&] {
              build_feature_maps(model, {.layers = {1, 2, 3, 5}});
            }),
            "maps after layers [1 2 3 5] of 4; ascending numbers from 1 to 4 are expected");
  EXPECT_NE(refusal_of([&] { build_feature_maps(model, {.layers = {2, 2, 3, 4}}); }), "accepted");
  EXPECT_NE(refusal_of([&] {
              build_feature_maps(model, {.layers = {1, 2, 3}});
            }),
            "accepted")
      << "a pyramid of three";
  EXPECT_EQ(refusal_of([&] {
              build_feature_maps(model, {.layers = {2, 4}, .scale = MapScale::kPatch});
            }),
            "accepted");
}

TEST(FeatureMaps, OfImagesTooSmallToPoolAreRefused) {
  const auto backbone = maps_of(backbone_named("xcit"), MapScale::kPyramid);
  EXPECT_EQ(refusal_of([&] {
              backbone->maps(torch::randn({1, 3, 16, 64}));
            }),
            "images of 16 x 64 pixels for maps of a stride of 32; at least 32 x 32 are expected");
}

}  // namespace
}  // namespace abl::models
