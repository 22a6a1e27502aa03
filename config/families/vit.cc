// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kVitKeys[] = {"dim", "depth", "heads", "mlp_ratio", "patch"};

/// Sizes of a ViT, of patches of 16 where nothing else is said.
ModelConfig vit_sizes(int dim, int depth, int heads, int patch = 16) {
  return {.dim = dim, .depth = depth, .heads = heads, .patch = patch};
}

/// Source: DeiT (ICML 2021), section 4.
ModelConfig distilled(ModelConfig model) {
  model.distillation_token = true;
  return model;
}

/// Source: DeiT III (ECCV 2022), section 3.
ModelConfig deit_3(ModelConfig model) {
  model.layer_scale = 1e-6;
  model.class_position = false;
  return model;
}

/// Source: Dosovitskiy et al. (ICLR 2021), Table 1, and DeiT, Table 1; named as in timm.
std::vector<Preset> vit_presets() {
  const ModelConfig tiny = vit_sizes(192, 12, 3), small = vit_sizes(384, 12, 6),
                    medium = vit_sizes(512, 12, 8), base = vit_sizes(768, 12, 12),
                    large = vit_sizes(1024, 24, 16);
  return {
      {"vit_tiny_patch16_224", "ViT-Ti/16", tiny},
      {"vit_tiny_patch16_384", "ViT-Ti/16 for 384 × 384 images", tiny, 384},
      {"vit_small_patch32_224", "ViT-S/32", vit_sizes(384, 12, 6, 32)},
      {"vit_small_patch32_384", "ViT-S/32 for 384 × 384 images", vit_sizes(384, 12, 6, 32), 384},
      {"vit_small_patch16_224", "ViT-S/16", small},
      {"vit_small_patch16_384", "ViT-S/16 for 384 × 384 images", small, 384},
      {"vit_small_patch8_224", "ViT-S/8", vit_sizes(384, 12, 6, 8)},
      {"vit_base_patch32_224", "ViT-B/32", vit_sizes(768, 12, 12, 32)},
      {"vit_base_patch32_384", "ViT-B/32 for 384 × 384 images", vit_sizes(768, 12, 12, 32), 384},
      {"vit_base_patch16_224", "ViT-B/16", base},
      {"vit_base_patch16_384", "ViT-B/16 for 384 × 384 images", base, 384},
      {"vit_base_patch8_224", "ViT-B/8", vit_sizes(768, 12, 12, 8)},
      {"vit_large_patch32_224", "ViT-L/32", vit_sizes(1024, 24, 16, 32)},
      {"vit_large_patch32_384", "ViT-L/32 for 384 × 384 images", vit_sizes(1024, 24, 16, 32), 384},
      {"vit_large_patch16_224", "ViT-L/16", large},
      {"vit_large_patch16_384", "ViT-L/16 for 384 × 384 images", large, 384},
      {"vit_large_patch14_224", "ViT-L/14", vit_sizes(1024, 24, 16, 14)},
      {"vit_huge_patch14_224", "ViT-H/14", vit_sizes(1280, 32, 16, 14)},
      {"deit_tiny_patch16_224", "DeiT-Ti, which is ViT-Ti/16", tiny},
      {"deit_small_patch16_224", "DeiT-S, which is ViT-S/16", small},
      {"deit_base_patch16_224", "DeiT-B, which is ViT-B/16", base},
      {"deit_base_patch16_384", "DeiT-B for 384 × 384 images", base, 384},
      {"deit_tiny_distilled_patch16_224", "DeiT-Ti with a distillation token", distilled(tiny)},
      {"deit_small_distilled_patch16_224", "DeiT-S with a distillation token", distilled(small)},
      {"deit_base_distilled_patch16_224", "DeiT-B with a distillation token", distilled(base)},
      {"deit_base_distilled_patch16_384", "the same for 384 × 384 images", distilled(base), 384},
      {"deit3_small_patch16_224", "DeiT III, ViT-S/16", deit_3(small)},
      {"deit3_small_patch16_384", "DeiT III, ViT-S/16 for 384 × 384 images", deit_3(small), 384},
      {"deit3_medium_patch16_224", "DeiT III, ViT-M/16", deit_3(medium)},
      {"deit3_base_patch16_224", "DeiT III, ViT-B/16", deit_3(base)},
      {"deit3_base_patch16_384", "DeiT III, ViT-B/16 for 384 × 384 images", deit_3(base), 384},
      {"deit3_large_patch16_224", "DeiT III, ViT-L/16", deit_3(large)},
      {"deit3_large_patch16_384", "DeiT III, ViT-L/16 for 384 × 384 images", deit_3(large), 384},
      {"deit3_huge_patch14_224", "DeiT III, ViT-H/14", deit_3(vit_sizes(1280, 32, 16, 14))},
  };
}

const std::vector<Field<ModelConfig>>& vit_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "qkv_bias",
       .member = &M::qkv_bias,
       .sentence = "Whether the layer that makes queries, keys and values has a bias.",
       .after = "patch"},
      {.name = "layer_scale",
       .member = &M::layer_scale,
       .sentence = "Initial value of the factors of each channel behind attention and MLP; 0 = none.",
       .range = {0, 100},
       .after = "qkv_bias"},
      {.name = "class_position",
       .member = &M::class_position,
       .sentence = "Whether the class token (and the distillation token) has a position; without one it "
                   "joins the patches after theirs are added, as in DeiT III.",
       .after = "layer_scale"},
      {.name = "distillation_token",
       .member = &M::distillation_token,
       .sentence = "Whether there is a second token with a head of its own, which learns from the teacher "
                   "of a recipe that distils, as in DeiT; the mean of both heads is evaluated.",
       .after = "class_position"},
  };
  return kFields;
}

/// What the attention has is the plugin's.
void settle_vit(ModelConfig& model) {
  if (!model.plugin.name.empty()) model.qkv_bias = ModelConfig{}.qkv_bias;
}

void check_vit_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  check_patches(model, image_size, problems);
  check_heads(model, problems);
}

}  // namespace

extern constinit const Family kVitFamily{
    .place = 2,
    .name = "vit",
    .sentence = "ViT with class token and learned positions, as in timm",
    .keys = kVitKeys,
    .adds_positions = true,
    .plugin = PluginPart::kAttention,
    .maps = MapsOf::kLayers,
    .describes_images = true,
    .presets = vit_presets,
    .own_fields = vit_fields,
    .layers = [](const ModelConfig& model) { return model.depth; },
    .settle = settle_vit,
    .check_sizes = check_vit_sizes,
};

}  // namespace abl::config
