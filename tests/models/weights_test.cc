// SPDX-License-Identifier: Apache-2.0
#include <torch/utils.h>

#include "models/weights/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/backbones/key_vit.h"
#include "models/backbones/resnet.h"
#include "models/backbones/swin.h"
#include "models/backbones/swin_v2.h"
#include "models/backbones/vit.h"
#include "models/embedding/positions.h"
#include "models/weights/resize.h"
#include "tests/models/foreign_states.h"

namespace abl::models {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

VitOptions vit(std::int64_t image_size = 32, std::int64_t classes = 5) {
  return {.image_size = image_size, .patch = 8, .classes = classes, .dim = 16, .depth = 1, .heads = 2};
}

TEST(Weights, OfTheSameModelAreTakenAsTheyAre) {
  torch::manual_seed(1);
  const Vit from{vit()};
  Vit into{vit()};
  const auto loaded = load_weights(*into, copy_of(*from));
  EXPECT_THAT(loaded.fresh, IsEmpty());
  EXPECT_THAT(loaded.resized, IsEmpty());
  expect_equal(*into, copy_of(*from));
}

TEST(Weights, WhatAWrapperPutsBeforeAllNamesIsLeftOut) {
  torch::manual_seed(3);
  const Vit from{vit(32)};
  for (const std::string prefix : {"module.", "_orig_mod.", "model.", "module._orig_mod."}) {
    State wrapped;
    for (const auto& [name, tensor] : copy_of(*from)) wrapped.emplace(prefix + name, tensor);
    Vit into{vit(32)};
    EXPECT_EQ(load_weights(*into, wrapped).prefix, prefix);
    expect_equal(*into, copy_of(*from));
    wrapped.emplace("epoch", torch::zeros({1}));
    EXPECT_THAT(refusal(*into, wrapped), HasSubstr("epoch is not a parameter"))
        << "a part of it is no wrapper";
  }
  Vit into{vit(32)};
  EXPECT_EQ(load_weights(*into, copy_of(*from)).prefix, "");
}

TEST(Weights, AHeadOfOtherClassesIsRefusedUnlessAskedFor) {
  torch::manual_seed(2);
  const Vit from{vit(32, 7)};
  Vit into{vit(32, 5)};
  EXPECT_THAT(refusal(*into, copy_of(*from)), AllOf(HasSubstr("head.weight has shape [7, 16]"),
                                                    HasSubstr("expects [5, 16]"), HasSubstr("head.bias")));
  auto expected = copy_of(*from);
  const auto own = copy_of(*into);
  const auto loaded = load_weights(*into, copy_of(*from), {.fresh_head = true});
  EXPECT_THAT(loaded.fresh, ElementsAre("head.bias", "head.weight"));
  for (const auto* name : {"head.weight", "head.bias"}) expected.insert_or_assign(name, own.at(name));
  expect_equal(*into, expected);
}

TEST(Weights, AHeadOfAsManyClassesIsTakenEvenWhenAFreshOneIsAllowed) {
  torch::manual_seed(3);
  const Vit from{vit()};
  Vit into{vit()};
  EXPECT_THAT(load_weights(*into, copy_of(*from), {.fresh_head = true}).fresh, IsEmpty());
  expect_equal(*into, copy_of(*from));
}

TEST(Weights, AHeadMayBeMissing) {
  torch::manual_seed(4);
  const ResNet from{ResNetOptions{.classes = 5, .layers = {1, 1, 1, 1}, .widths = {8, 8, 8, 8}}};
  auto state = copy_of(*from);
  state.erase("fc.weight");
  state.erase("fc.bias");
  ResNet into{ResNetOptions{.classes = 3, .layers = {1, 1, 1, 1}, .widths = {8, 8, 8, 8}}};
  EXPECT_THAT(refusal(*into, state), HasSubstr("fc.weight is missing"));
  EXPECT_THAT(load_weights(*into, state, {.fresh_head = true}).fresh, ElementsAre("fc.bias", "fc.weight"));
}

TEST(Weights, AHeadOfAnotherWidthIsRefusedAlways) {
  Vit into{vit()};
  auto state = copy_of(*into);
  state.insert_or_assign("head.weight", torch::zeros({7, 12}));
  EXPECT_THAT(refusal(*into, state, {.fresh_head = true}), HasSubstr("head.weight has shape [7, 12]"));
}

TEST(Weights, AHeadWhoseTensorsContradictEachOtherIsRefusedAlways) {
  Vit into{vit()};
  auto state = copy_of(*into);
  state.insert_or_assign("head.bias", torch::zeros({7}));
  EXPECT_THAT(refusal(*into, state, {.fresh_head = true}), HasSubstr("head.bias has shape [7]"));
  state.erase("head.bias");
  EXPECT_THAT(refusal(*into, state, {.fresh_head = true}), HasSubstr("head.bias is missing"));
}

TEST(Weights, PositionsOfAnotherImageSizeAreInterpolatedWhenAskedFor) {
  torch::manual_seed(5);
  const Vit from{vit(32)};
  Vit into{vit(64)};
  EXPECT_THAT(refusal(*into, copy_of(*from)), HasSubstr("pos_embed has shape [1, 17, 16]"));
  const auto loaded = load_weights(*into, copy_of(*from), {.resize_positions = true});
  EXPECT_THAT(loaded.resized, ElementsAre("pos_embed"));
  auto expected = copy_of(*from);
  expected.insert_or_assign("pos_embed", interpolate_positions(expected.at("pos_embed"), 8, 8));
  expect_equal(*into, expected);
}

TEST(Weights, PositionsOfPatchesAloneOrWithTwoTokensAreInterpolatedAsTheyAre) {
  torch::manual_seed(6);
  const auto of_size = [](std::int64_t size, bool is_distilled) {
    auto options = vit(size);
    options.has_class_position = is_distilled, options.has_distillation_token = is_distilled;
    return options;
  };
  for (const bool is_distilled : {false, true}) {
    const Vit from{of_size(32, is_distilled)};
    Vit into{of_size(64, is_distilled)};
    EXPECT_THAT(load_weights(*into, copy_of(*from), {.resize_positions = true}).resized,
                ElementsAre("pos_embed"));
    const auto given = copy_of(*from).at("pos_embed"), resized = copy_of(*into).at("pos_embed");
    const std::int64_t leading = is_distilled ? 2 : 0;
    EXPECT_TRUE(resized.equal(interpolate_positions(given, 8, 8, leading)));
    EXPECT_TRUE(resized.narrow(1, 0, leading).equal(given.narrow(1, 0, leading))) << "tokens have no place";
  }
}

TEST(Weights, PositionsThatLackAClassTokenAreRefusedWithTheReason) {
  auto without = vit(32);
  without.has_class_position = false;
  const Vit from{without};
  Vit into{vit(64)};
  EXPECT_THAT(refusal(*into, copy_of(*from), {.resize_positions = true}),
              HasSubstr("pos_embed: 16 positions; without the 1 of leading tokens (class, distillation) that "
                        "the model has, they are of no square map"));
}

TEST(Weights, BothHeadsOfADistilledModelAreFreshForOtherClasses) {
  auto options = vit(32);
  options.has_distillation_token = true;
  const Vit from{options};
  options.classes = 7;
  Vit into{options};
  EXPECT_THAT(load_weights(*into, copy_of(*from), {.fresh_head = true}).fresh,
              ElementsAre("head.bias", "head.weight", "head_dist.bias", "head_dist.weight"));
}

TEST(Weights, PositionsOfNoSquareMapAreRefused) {
  KeyVit into{KeyVitOptions{.image_size = 32,
                            .patch = 8,
                            .classes = 5,
                            .dim = 16,
                            .heads = 2,
                            .mlp_dim = 32,
                            .keys = {std::nullopt}}};
  auto state = copy_of(*into);
  state.insert_or_assign("pos", torch::zeros({1, 1 + 5, 16}));
  EXPECT_THAT(refusal(*into, state, {.resize_positions = true}),
              AllOf(HasSubstr("pos: "), HasSubstr("no square map")));
}

TEST(Weights, OfSwinFitAnyImageOfTheSameWindow) {
  torch::manual_seed(6);
  const auto of_size = [](std::int64_t image_size) {
    return SwinOptions{.image_size = image_size,
                       .classes = 5,
                       .dim = 12,
                       .depths = {2},
                       .heads = {3},
                       .attention = std::vector<WindowAttentionChoice>(2, QkvChoice{})};
  };
  const Swin from{of_size(56)};
  Swin into{of_size(96)};
  EXPECT_THAT(load_weights(*into, copy_of(*from)).fresh, IsEmpty());
  expect_equal(*into, copy_of(*from));
}

SwinOptions swin_of_window(std::int64_t window) {
  return {.image_size = 64,
          .classes = 5,
          .dim = 12,
          .depths = {2},
          .heads = {3},
          .window = window,
          .attention = std::vector<WindowAttentionChoice>(2, QkvChoice{})};
}

TEST(Weights, OfSwinOfAnotherWindowHaveTheirBiasesInterpolatedWhenAskedFor) {
  torch::manual_seed(11);
  const Swin from{swin_of_window(4)};
  Swin into{swin_of_window(8)};
  const std::string table = "layers.0.blocks.1.attn.relative_position_bias_table";
  EXPECT_THAT(refusal(*into, copy_of(*from)), HasSubstr(table + " has shape [49, 3]"));
  auto state = copy_of(*from);
  state.at(table).select(1, 2).fill_(0.75);  // one head sees no positions: nor does it afterwards
  const auto loaded = load_weights(*into, state, {.resize_positions = true});
  EXPECT_THAT(loaded.resized, ElementsAre("layers.0.blocks.0.attn.relative_position_bias_table", table));
  auto expected = state;
  for (const auto& name : loaded.resized) expected.at(name) = interpolate_bias_table(state.at(name), 8);
  expect_equal(*into, expected);
  const auto now = copy_of(*into).at(table);
  EXPECT_TRUE(now.select(1, 2).allclose(torch::full({225}, 0.75)));
  EXPECT_TRUE(now[112].allclose(state.at(table)[24])) << "a token's bias towards itself stays";
}

TEST(Weights, BiasesOfNoSquareWindowAreRefused) {
  Swin into{swin_of_window(8)};
  auto state = copy_of(*into);
  state.at("layers.0.blocks.0.attn.relative_position_bias_table") = torch::zeros({50, 3});
  EXPECT_THAT(refusal(*into, state, {.resize_positions = true}),
              AllOf(HasSubstr("relative_position_bias_table: "), HasSubstr("no square window")));
}

TEST(Weights, OfSwinV2FitAnyWindowForTheirPositionsAreComputed) {
  torch::manual_seed(12);
  const auto of_window = [](std::int64_t window) {
    return SwinV2Options{.image_size = 64,
                         .classes = 5,
                         .dim = 12,
                         .depths = {2},
                         .heads = {3},
                         .window = window,
                         .attention = std::vector<CosineAttentionChoice>(2, QkvChoice{})};
  };
  const SwinV2 from{of_window(4)};
  SwinV2 into{of_window(8)};
  auto state = copy_of(*from);
  state.emplace("layers.0.blocks.0.attn.relative_coords_table",
                torch::zeros({1, 7, 7, 2}));  // as in older files
  EXPECT_THAT(load_weights(*into, state).fresh, IsEmpty());
  expect_equal(*into, copy_of(*from));
}

TEST(Weights, OfTheClassTokenVitServeAnotherPatchByAResampledKernel) {
  torch::manual_seed(13);
  const Vit from{vit(32)};
  auto larger = vit(64);
  larger.patch *= 2;
  Vit into{larger};
  EXPECT_THAT(refusal(*into, copy_of(*from)), HasSubstr("patch_embed.proj.weight has shape"));
  EXPECT_THAT(load_weights(*into, copy_of(*from), {.other_patch = true}).resized,
              ElementsAre("patch_embed.proj.weight"));
}

TEST(ResampledPatches, EmbedAnEnlargedPatchAsItWasEmbedded) {
  torch::manual_seed(14);
  const auto weight = torch::randn({4, 3, 8, 8}, torch::kDouble),
             patch = torch::randn({1, 3, 8, 8}, torch::kDouble);
  const auto enlarged = at::_upsample_bicubic2d_aa(patch, {16, 16}, false);
  EXPECT_TRUE(
      (resample_patches(weight, 16) * enlarged).sum({1, 2, 3}).allclose((weight * patch).sum({1, 2, 3})));
}

TEST(Weights, OfXcitFitAnyImageSize) {
  torch::manual_seed(7);
  const Xcit from{xcit(8, 64)};
  stir(*from);
  Xcit into{xcit(8, 96)};
  EXPECT_THAT(load_weights(*into, copy_of(*from)).fresh, IsEmpty());
  expect_equal(*into, copy_of(*from));
}

TEST(Weights, OfXcitsLargerPatchServeTheSmallerButForTheConvolutionThatSeesPixels) {
  torch::manual_seed(8);
  const Xcit from{xcit(16)};
  stir(*from);
  Xcit into{xcit(8)};
  const auto own = copy_of(*into);
  EXPECT_THAT(refusal(*into, copy_of(*from)), HasSubstr("patch_embed.proj.6.0.weight is not a parameter"));
  const auto loaded = load_weights(*into, copy_of(*from), {.other_patch = true});
  EXPECT_THAT(loaded.fresh, Contains("patch_embed.proj.0.0.weight"));
  EXPECT_EQ(loaded.fresh.size(), 6U) << "a convolution and its normalisation";
  const auto now = copy_of(*into), theirs = copy_of(*from);
  for (const auto* rest : {".0.weight", ".1.weight", ".1.bias", ".1.running_mean", ".1.running_var"}) {
    const std::string prefix = "patch_embed.proj.", end = rest;
    EXPECT_TRUE(torch::equal(now.at(prefix + "0" + end), own.at(prefix + "0" + end))) << end;
    EXPECT_TRUE(torch::equal(now.at(prefix + "2" + end), theirs.at(prefix + "4" + end))) << end;
    EXPECT_TRUE(torch::equal(now.at(prefix + "4" + end), theirs.at(prefix + "6" + end))) << end;
  }
  EXPECT_TRUE(torch::equal(now.at("blocks.0.attn.qkv.weight"), theirs.at("blocks.0.attn.qkv.weight")));
}

TEST(Weights, OfXcitsSmallerPatchServeTheLargerAsFarAsTheyGo) {
  torch::manual_seed(9);
  const Xcit from{xcit(8)};
  stir(*from);
  Xcit into{xcit(16)};
  const auto loaded = load_weights(*into, copy_of(*from), {.other_patch = true});
  EXPECT_EQ(loaded.fresh.size(), 12U) << "two convolutions and their normalisations";
  const auto now = copy_of(*into), theirs = copy_of(*from);
  EXPECT_TRUE(torch::equal(now.at("patch_embed.proj.4.0.weight"), theirs.at("patch_embed.proj.2.0.weight")));
  EXPECT_TRUE(torch::equal(now.at("patch_embed.proj.6.0.weight"), theirs.at("patch_embed.proj.4.0.weight")));
}

TEST(Weights, OfHalfPrecisionAreTakenAndIntegersAreNot) {
  torch::manual_seed(10);
  const Vit from{vit()};
  State half;
  for (const auto& [name, tensor] : state_of(*from)) half.emplace(name, tensor.to(torch::kHalf));
  Vit into{vit()};
  load_weights(*into, half);
  EXPECT_TRUE(torch::equal(state_of(*into).at("norm.weight"), torch::ones({16})));
  auto integers = copy_of(*from);
  integers.insert_or_assign("norm.weight", torch::ones({16}, torch::kLong));
  EXPECT_THAT(refusal(*into, integers), HasSubstr("norm.weight has type int64; the model expects float32"));
}

TEST(Weights, ThatAreNotFiniteInTheModelsTypeAreRefused) {
  Vit into{vit()};
  const auto before = copy_of(*into);
  auto state = copy_of(*into);
  for (const auto& [value, type] : {std::pair{1e300, torch::kDouble}, {std::nan(""), torch::kFloat}}) {
    state.at("head.bias") = torch::full({5}, value, type);
    EXPECT_EQ(refusal(*into, state), "head.bias has values that are not finite as float32");
    expect_equal(*into, before);
  }
  state.at("head.bias") = torch::full({5}, 1e30, torch::kDouble);
  load_weights(*into, state);
}

TEST(Weights, WhatTheModelDoesNotHaveIsNamed) {
  Vit into{vit()};
  auto state = copy_of(*into);
  state.emplace("dist_token", torch::zeros({1, 1, 16}));
  state.erase("norm.bias");
  EXPECT_THAT(refusal(*into, state), AllOf(HasSubstr("dist_token is not a parameter of the model"),
                                           HasSubstr("norm.bias is missing; the model expects [16]")));
}

}  // namespace
}  // namespace abl::models
