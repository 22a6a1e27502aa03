// SPDX-License-Identifier: Apache-2.0
#include "config/presets.h"

#include <algorithm>
#include <array>

namespace abl::config {
namespace {

// Source: MSF Table 5 and supplement Table B.
constexpr std::array kPresets{
    Preset{"simple-vit-nano", "simple-vit", 128, 1, 4, 32, 8, 256,
           "one layer, for 32 × 32 images on a CPU: the demo's model"},
    Preset{"simple-vit-ti", "simple-vit", 192, 12, 3, 64, 16, 0, "ViT-Ti of the MSF paper"},
    Preset{"simple-vit-ss", "simple-vit", 384, 6, 6, 64, 16, 0, "ViT-SS of the MSF paper"},
    Preset{"simple-vit-s", "simple-vit", 384, 12, 6, 64, 16, 0, "ViT-S of the MSF paper"},
    Preset{"simple-vit-b", "simple-vit", 768, 12, 12, 64, 16, 0, "ViT-B of the MSF paper"},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  return found == kPresets.end() ? nullptr : &*found;
}

ModelConfig model_of(const Preset& preset) {
  return ModelConfig{.preset = std::string{preset.name},
                     .family = std::string{preset.family},
                     .dim = preset.dim,
                     .depth = preset.depth,
                     .heads = preset.heads,
                     .dim_head = preset.dim_head,
                     .mlp_dim = preset.mlp_dim,
                     .patch = preset.patch};
}

}  // namespace abl::config
