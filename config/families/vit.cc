// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kVitKeys[] = {"dim", "depth", "heads", "mlp_ratio", "patch"};

/// Source: Dosovitskiy et al. (ICLR 2021), Table 1, and DeiT, Table 1; named as in timm.
std::vector<Preset> vit_presets() {
  return {
      {"vit_tiny_patch16_224", "ViT-Ti/16", {.dim = 192, .depth = 12, .heads = 3}},
      {"vit_small_patch16_224", "ViT-S/16", {.dim = 384, .depth = 12, .heads = 6}},
      {"vit_base_patch16_224", "ViT-B/16", {.dim = 768, .depth = 12, .heads = 12}},
  };
}

const std::vector<Field<ModelConfig>>& vit_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "qkv_bias",
       .member = &M::qkv_bias,
       .sentence = "Whether the layer that makes queries, keys and values has a bias.",
       .after = "patch"},
  };
  return kFields;
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
    .presets = vit_presets,
    .own_fields = vit_fields,
    .layers = [](const ModelConfig& model) { return model.depth; },
    .check_sizes = check_vit_sizes,
};

}  // namespace abl::config
