// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kSimpleVitKeys[] = {"dim", "depth", "heads", "mlp_dim", "patch"};
constexpr std::string_view kSimpleVitSections[] = {"attention"};

/// Source: MSF Table 5 and supplement Table B.
std::vector<Preset> simple_vit_presets() {
  return {
      {"simple-vit-nano",
       "one layer, for 32 × 32 images on a CPU: the demo's model",
       {.dim = 128, .depth = 1, .heads = 4, .dim_head = 32, .mlp_dim = 256, .patch = 8},
       32,
       false},
      {"simple-vit-ti", "ViT-Ti of the MSF paper", {.dim = 192, .depth = 12, .heads = 3}},
      {"simple-vit-ss", "ViT-SS of the MSF paper", {.dim = 384, .depth = 6, .heads = 6}},
      {"simple-vit-s", "ViT-S of the MSF paper", {.dim = 384, .depth = 12, .heads = 6}},
      {"simple-vit-b", "ViT-B of the MSF paper", {.dim = 768, .depth = 12, .heads = 12}},
  };
}

const std::vector<Field<ModelConfig>>& simple_vit_fields() {
  using M = ModelConfig;
  static const std::vector<Field<M>> kFields{
      {.name = "dim_head",
       .member = &M::dim_head,
       .sentence = "Width of one head.",
       .range = {1, 65536},
       .after = "heads"},
  };
  return kFields;
}

void check_simple_vit_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  if (model.dim % 4 != 0)
    complain(problems, "dim", "{} is not a multiple of 4, which sine and cosine positions need", model.dim);
  check_patches(model, image_size, problems);
}

}  // namespace

extern constinit const Family kSimpleVitFamily{
    .place = 1,
    .name = "simple-vit",
    .sentence = "ViT without class token, with fixed positions: the backbone of the MSF paper",
    .keys = kSimpleVitKeys,
    .sections = kSimpleVitSections,
    .adds_positions = true,
    .maps = MapsOf::kLayers,
    .presets = simple_vit_presets,
    .own_fields = simple_vit_fields,
    .layers = [](const ModelConfig& model) { return model.depth; },
    .check_sizes = check_simple_vit_sizes,
};

}  // namespace abl::config
