// SPDX-License-Identifier: Apache-2.0
#include "models/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "models/embedding/interpolate_bias_table.h"
#include "models/embedding/interpolate_positions.h"
#include "models/embedding/resample_patches.h"
#include "models/key_vit.h"
#include "models/resnet.h"
#include "models/simple_vit.h"
#include "models/state.h"
#include "models/swin.h"
#include "models/swin_v2.h"
#include "models/vit.h"
#include "models/xcit.h"

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

XcitOptions xcit(std::int64_t patch = 8, std::int64_t image_size = 64) {
  return {.image_size = image_size,
          .patch = patch,
          .classes = 5,
          .dim = 32,
          .heads = 4,
          .blocks = std::vector<XcitChoice>(1)};
}

SimpleVitOptions msf(const AttentionChoice& choice) {
  return {.image_size = 32,
          .patch = 8,
          .classes = 5,
          .dim = 16,
          .depth = 2,
          .heads = 2,
          .dim_head = 8,
          .mlp_dim = 32,
          .attention = std::vector<AttentionChoice>(2, choice)};
}

/// The state of a model, as another program would hold it.
State copy_of(const torch::nn::Module& model) {
  State copy;
  for (const auto& [name, tensor] : state_of(model)) copy.emplace(name, tensor.clone());
  return copy;
}

/// Random values where a model starts with constants.
void stir(const torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : state_of(model))
    if (tensor.is_floating_point()) tensor.copy_(torch::rand(tensor.sizes()) + 0.1);
}

std::string refusal(torch::nn::Module& model, const State& state, const WeightsOptions& options = {}) {
  const auto before = copy_of(model);
  try {
    load_weights(model, state, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    for (const auto& [name, tensor] : state_of(model))
      EXPECT_TRUE(torch::equal(tensor, before.at(name))) << name << " was changed by a refused state";
    return error.what();
  }
  return "accepted";
}

void expect_equal(const torch::nn::Module& model, const State& expected) {
  for (const auto& [name, tensor] : state_of(model))
    EXPECT_TRUE(torch::equal(tensor, expected.at(name))) << name;
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
  EXPECT_THAT(refusal(*into, integers), HasSubstr("norm.weight holds Long; the model expects Float"));
}

TEST(Weights, WhatTheModelDoesNotHaveIsNamed) {
  Vit into{vit()};
  auto state = copy_of(*into);
  state.emplace("dist_token", torch::zeros({1, 1, 16}));
  state.erase("norm.bias");
  EXPECT_THAT(refusal(*into, state), AllOf(HasSubstr("dist_token is not a parameter of the model"),
                                           HasSubstr("norm.bias is missing; the model expects [16]")));
}

/// What the MSF release's grouped layer computes, output by output: output j of the fused layer is made of
/// the inputs of group j mod G by the row j div G of that group.
torch::Tensor released_projection(const torch::Tensor& x, const torch::Tensor& fused, std::int64_t groups) {
  const auto per_group = fused.size(0) / groups, width = fused.size(1);
  std::vector<torch::Tensor> outputs;
  for (std::int64_t j = 0; j < fused.size(0); ++j)
    outputs.push_back(
        x.narrow(-1, j % groups * width, width).matmul(fused[j % groups * per_group + j / groups]));
  return torch::stack(outputs, -1);
}

class MsfRelease : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(MsfRelease, KeepsInOneTensorWhatWeKeepByRole) {
  torch::manual_seed(11);
  const auto groups = GetParam();
  const auto fused = torch::randn({4 * 16, 16 / groups}), x = torch::randn({2, 3, 16});
  const auto ours = from_msf_release({{"transformer.layers.7.0.norm.weight", torch::ones({16})},
                                      {"transformer.layers.7.0.to_qkvp.weight", fused}});
  const auto released = released_projection(x, fused, groups).chunk(4, -1);
  for (std::size_t role = 0; role < 4; ++role) {
    const auto name = std::string{"attn.7.mat."} + "QKVP"[role];
    const auto made = grouped_linear(x, ours.at(name), groups, Layout::kInterleaved);
    EXPECT_LT((made - released[role]).abs().max().item<double>(), 1e-5) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, MsfRelease, ::testing::Values(1, 2, 4));

/// The state of one of our models under the names of the MSF release.
State released_msf(const State& ours, std::int64_t groups, const std::string& letters) {
  State out;
  const std::map<std::string, std::string> outside{{"embed_norm1.", "to_patch_embedding.1."},
                                                   {"embed.", "to_patch_embedding.2."},
                                                   {"embed_norm2.", "to_patch_embedding.3."},
                                                   {"head_norm.", "linear_head.0."},
                                                   {"head.", "linear_head.1."}};
  for (const auto& [mine, theirs] : outside)
    for (const std::string end : {"weight", "bias"}) out.emplace(theirs + end, ours.at(mine + end));
  for (const std::string layer : {"0", "1"}) {
    const auto attention = "attn." + layer + ".", mlp = "ff." + layer + ".";
    const auto theirs = "transformer.layers." + layer + ".";
    for (const std::string end : {"weight", "bias"}) {
      out.emplace(theirs + "0.norm." + end, ours.at(attention + "norm." + end));
      out.emplace(theirs + "1.net.0." + end, ours.at(mlp + "norm." + end));
      out.emplace(theirs + "1.net.1." + end, ours.at(mlp + "fc1." + end));
      out.emplace(theirs + "1.net.3." + end, ours.at(mlp + "fc2." + end));
    }
    std::vector<torch::Tensor> rows;  // by group, then role
    for (std::int64_t group = 0; group < groups; ++group)
      for (const char letter : letters)
        rows.push_back(ours.at(attention + "mat." + letter).chunk(groups)[group]);
    out.emplace(theirs + (letters == "QKV" ? "0.to_qkv.weight" : "0.to_qkvp.weight"), torch::cat(rows));
    out.emplace(theirs + "0.to_out.weight", ours.at(attention + "mat.W"));
  }
  return out;
}

TEST(MsfReleaseNames, AreAllKnown) {
  torch::manual_seed(12);
  const AttentionChoice original{},
      grouped{.kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW", .groups = 2};
  for (const auto& choice : {original, grouped}) {
    const SimpleVit from{msf(choice)};
    SimpleVit into{msf(choice)};
    const auto letters = choice.probe == Probe::kNone ? "QKV" : "QKVP";
    load_weights(*into, released_msf(copy_of(*from), choice.groups, letters));
    expect_equal(*into, copy_of(*from));
  }
}

TEST(MsfReleaseNames, AFusedTensorThatIsNotOfItsRolesIsRefused) {
  SimpleVit into{msf({})};
  auto state = released_msf(copy_of(*into), 1, "QKV");
  state.insert_or_assign("transformer.layers.1.0.to_qkv.weight", torch::zeros({47, 16}));
  EXPECT_THAT(refusal(*into, state), HasSubstr("transformer.layers.1.0.to_qkv.weight has shape [47, 16]"));
  state.insert_or_assign("transformer.layers.1.0.to_qkv.weight", torch::zeros({48, 0}));
  EXPECT_THAT(refusal(*into, state), HasSubstr("has shape [48, 0]"));
  state.erase("transformer.layers.1.0.norm.weight");
  EXPECT_THAT(refusal(*into, state), HasSubstr("stands without the norm"));
}

TEST(XcitReleaseNames, AreAllKnown) {
  torch::manual_seed(13);
  const Xcit from{xcit()};
  stir(*from);
  State released;
  for (const auto& [name, tensor] : copy_of(*from)) {
    if (name.starts_with("pos_embed."))
      released.emplace("pos_embeder." + name.substr(10), tensor);
    else if (!name.starts_with("cls_attn_blocks.") ||
             (name.find(".attn.") == std::string::npos || name.find(".proj.") != std::string::npos))
      released.emplace(name, tensor);
  }
  for (const std::string block : {"0", "1"})
    for (const std::string end : {"weight", "bias"}) {
      const auto attention = "cls_attn_blocks." + block + ".attn.";
      const auto ours = copy_of(*from);
      released.emplace(attention + "qkv." + end,
                       torch::cat({ours.at(attention + "q." + end), ours.at(attention + "k." + end),
                                   ours.at(attention + "v." + end)}));
    }
  Xcit into{xcit()};
  load_weights(*into, released);
  expect_equal(*into, copy_of(*from));
  released.insert_or_assign("cls_attn_blocks.1.attn.qkv.bias", torch::zeros({95}));
  EXPECT_THAT(refusal(*into, released), HasSubstr("cls_attn_blocks.1.attn.qkv.bias has shape [95]"));
}

}  // namespace
}  // namespace abl::models
