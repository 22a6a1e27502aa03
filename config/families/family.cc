// SPDX-License-Identifier: Apache-2.0
#include "config/families/family.h"

#include <algorithm>
#include <array>

namespace abl::config {
namespace {

constexpr std::array kFamilies{
    Family{"simple-vit", "ViT without class token, with fixed positions: the backbone of the MSF paper"},
    Family{"vit", "ViT with class token and learned positions, as in timm"},
    Family{"key-vit",
           "ViT of the manifold key paper: norms around the patch projection, no bias in q, k and v"},
    Family{"swin", "Swin transformer: attention in windows, in stages"},
    Family{"swin-v2", "Swin transformer V2: cosine attention, norms at the end of the branches"},
    Family{"xcit", "XCiT: attention over channels, local patch interaction, class attention at the end"},
    Family{"resnet", "ResNet and ResNeXt"},
    Family{"efficientnet", "EfficientNet-B0, and by factors its larger relatives"},
    Family{"regnet", "RegNetY"},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

bool is_for(const std::vector<std::string>& listed, const std::string& family) {
  return listed.empty() || family.empty() || std::ranges::find(listed, family) != listed.end();
}

std::string all_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets{
      // Source: MSF Table 5 and supplement Table B.
      {"simple-vit-nano",
       "simple-vit",
       "one layer, for 32 × 32 images on a CPU: the demo's model",
       {.dim = 128, .depth = 1, .heads = 4, .dim_head = 32, .mlp_dim = 256, .patch = 8},
       32,
       false},
      {"simple-vit-ti", "simple-vit", "ViT-Ti of the MSF paper", {.dim = 192, .depth = 12, .heads = 3}},
      {"simple-vit-ss", "simple-vit", "ViT-SS of the MSF paper", {.dim = 384, .depth = 6, .heads = 6}},
      {"simple-vit-s", "simple-vit", "ViT-S of the MSF paper", {.dim = 384, .depth = 12, .heads = 6}},
      {"simple-vit-b", "simple-vit", "ViT-B of the MSF paper", {.dim = 768, .depth = 12, .heads = 12}},
      // Source: Dosovitskiy et al. (ICLR 2021), Table 1, and DeiT, Table 1; named as in timm.
      {"vit_tiny_patch16_224", "vit", "ViT-Ti/16", {.dim = 192, .depth = 12, .heads = 3}},
      {"vit_small_patch16_224", "vit", "ViT-S/16", {.dim = 384, .depth = 12, .heads = 6}},
      {"vit_base_patch16_224", "vit", "ViT-B/16", {.dim = 768, .depth = 12, .heads = 12}},
      // Source: manifold key section 5; the base model follows from the printed counts.
      {"key-vit-s", "key-vit", "ViT-S/16 of the manifold key paper", {.dim = 384, .depth = 12, .heads = 6}},
      {"key-vit-b", "key-vit", "ViT-B/16 of the manifold key paper", {.dim = 768, .depth = 12, .heads = 12}},
      // Source: Swin section 3.3, Swin V2 section 3; named as in timm.
      {"swin_tiny_patch4_window7_224",
       "swin",
       "Swin-T",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 6, 2}, .stage_heads = {3, 6, 12, 24}}},
      {"swin_small_patch4_window7_224",
       "swin",
       "Swin-S",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 18, 2}, .stage_heads = {3, 6, 12, 24}}},
      {"swinv2_tiny_window8_256",
       "swin-v2",
       "SwinV2-T, for 256 × 256 images",
       {.dim = 96, .patch = 4, .stage_depths = {2, 2, 6, 2}, .stage_heads = {3, 6, 12, 24}, .window = 8},
       256},
      {"swinv2_base_window12to16_192to256",
       "swin-v2",
       "SwinV2-B of windows of 16, to be started from weights of 12, for 256 × 256 images",
       {.dim = 128,
        .patch = 4,
        .stage_depths = {2, 2, 18, 2},
        .stage_heads = {4, 8, 16, 32},
        .window = 16,
        .pretrained_window = {12, 12, 12, 6}},
       256},
      // Source: XCiT Table 1 and its release; named as in timm.
      {"xcit_nano_12_p16_224",
       "xcit",
       "XCiT-N12/16",
       {.dim = 128, .depth = 12, .heads = 4, .tokens_norm = false}},
      {"xcit_nano_12_p8_224",
       "xcit",
       "XCiT-N12/8",
       {.dim = 128, .depth = 12, .heads = 4, .patch = 8, .tokens_norm = false}},
      {"xcit_tiny_12_p16_224", "xcit", "XCiT-T12/16", {.dim = 192, .depth = 12, .heads = 4}},
      {"xcit_tiny_12_p8_224", "xcit", "XCiT-T12/8", {.dim = 192, .depth = 12, .heads = 4, .patch = 8}},
      {"xcit_tiny_24_p16_224", "xcit", "XCiT-T24/16", {.dim = 192, .depth = 24, .heads = 4, .eta = 1e-5}},
      {"xcit_tiny_24_p8_224",
       "xcit",
       "XCiT-T24/8",
       {.dim = 192, .depth = 24, .heads = 4, .patch = 8, .eta = 1e-5}},
      {"xcit_small_12_p16_224", "xcit", "XCiT-S12/16", {.dim = 384, .depth = 12, .heads = 8}},
      {"xcit_small_12_p8_224", "xcit", "XCiT-S12/8", {.dim = 384, .depth = 12, .heads = 8, .patch = 8}},
      {"xcit_small_24_p16_224", "xcit", "XCiT-S24/16", {.dim = 384, .depth = 24, .heads = 8, .eta = 1e-5}},
      {"xcit_small_24_p8_224",
       "xcit",
       "XCiT-S24/8",
       {.dim = 384, .depth = 24, .heads = 8, .patch = 8, .eta = 1e-5}},
      {"xcit_medium_24_p16_224", "xcit", "XCiT-M24/16", {.dim = 512, .depth = 24, .heads = 8, .eta = 1e-5}},
      {"xcit_medium_24_p8_224",
       "xcit",
       "XCiT-M24/8",
       {.dim = 512, .depth = 24, .heads = 8, .patch = 8, .eta = 1e-5}},
      {"xcit_large_24_p16_224", "xcit", "XCiT-L24/16", {.dim = 768, .depth = 24, .heads = 16, .eta = 1e-5}},
      {"xcit_large_24_p8_224",
       "xcit",
       "XCiT-L24/8",
       {.dim = 768, .depth = 24, .heads = 16, .patch = 8, .eta = 1e-5}},
      // Source: He et al. (CVPR 2016), Table 1; Xie et al. (CVPR 2017), Table 1; named as in timm.
      {"resnet50", "resnet", "ResNet-50", {.stage_depths = {3, 4, 6, 3}}},
      {"resnet101", "resnet", "ResNet-101", {.stage_depths = {3, 4, 23, 3}}},
      {"resnext50_32x4d",
       "resnet",
       "ResNeXt-50 (32 × 4)",
       {.stage_depths = {3, 4, 6, 3}, .cardinality = 32, .base_width = 4}},
      {"resnext101_32x8d",
       "resnet",
       "ResNeXt-101 (32 × 8)",
       {.stage_depths = {3, 4, 23, 3}, .cardinality = 32, .base_width = 8}},
      // Source: Tan and Le (ICML 2019), Table 1; named as in timm.
      {"efficientnet_b0", "efficientnet", "EfficientNet-B0", {}},
      // Source: Radosavovic et al. (CVPR 2020), Figure 11; named as in timm.
      {"regnety_160",
       "regnet",
       "RegNetY-16GF",
       {.stage_depths = {2, 4, 11, 1}, .stage_widths = {224, 448, 1232, 3024}, .group_width = 112}},
  };
  return kPresets;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(presets(), name, &Preset::name);
  return found == presets().end() ? nullptr : &*found;
}

ModelConfig model_of(const Preset& preset) {
  ModelConfig model = preset.sizes;
  model.preset = preset.name;
  model.family = preset.family;
  return model;
}

}  // namespace abl::config
