// SPDX-License-Identifier: Apache-2.0
#include "config/model/family.h"
#include "config/model/shape_rules.h"

namespace abl::config {
namespace {

constexpr std::string_view kKeyVitKeys[] = {"dim", "depth", "heads", "mlp_dim", "patch"};
constexpr std::string_view kKeyVitSections[] = {"key"};

/// Source: manifold key section 5; the base model follows from the printed counts.
std::vector<Preset> key_vit_presets() {
  return {
      {"key-vit-s", "ViT-S/16 of the manifold key paper", {.dim = 384, .depth = 12, .heads = 6}},
      {"key-vit-b", "ViT-B/16 of the manifold key paper", {.dim = 768, .depth = 12, .heads = 12}},
  };
}

void check_key_vit_sizes(const ModelConfig& model, int image_size, std::vector<Problem>& problems) {
  check_patches(model, image_size, problems);
  check_heads(model, problems);
}

}  // namespace

extern constinit const Family kKeyVitFamily{
    .place = 3,
    .name = "key-vit",
    .sentence = "ViT of the manifold key paper: norms around the patch projection, no bias in q, k and v",
    .keys = kKeyVitKeys,
    .sections = kKeyVitSections,
    .adds_positions = true,
    .maps = MapsOf::kLayers,
    .presets = key_vit_presets,
    .layers = [](const ModelConfig& model) { return model.depth; },
    .check_sizes = check_key_vit_sizes,
};

}  // namespace abl::config
