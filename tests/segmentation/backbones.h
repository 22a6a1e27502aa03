// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/backbones/key_vit.h"
#include "models/backbones/model_options.h"
#include "models/backbones/simple_vit.h"
#include "models/backbones/swin.h"
#include "models/backbones/swin_v2.h"
#include "models/backbones/vit.h"
#include "models/backbones/xcit.h"

namespace abl::models {

/// Small backbones for images of 64 x 64 pixels, of four layers or stages, with the attention of each paper.
inline std::vector<std::pair<std::string, ModelOptions>> backbones() {
  const auto xcit = [](const XcitChoice& choice) {
    return XcitOptions{.image_size = 64,
                       .dim = 16,
                       .heads = 2,
                       .class_blocks = 1,
                       .blocks = std::vector<XcitChoice>(4, choice)};
  };
  const auto simple = [](const AttentionChoice& choice) {
    return SimpleVitOptions{.image_size = 64,
                            .classes = 5,
                            .dim = 16,
                            .depth = 4,
                            .heads = 2,
                            .dim_head = 8,
                            .mlp_dim = 24,
                            .attention = std::vector<AttentionChoice>(4, choice)};
  };
  const auto key = [](const std::optional<KeyChoice>& choice) {
    return KeyVitOptions{.image_size = 64,
                         .dim = 16,
                         .heads = 2,
                         .mlp_dim = 24,
                         .keys = std::vector<std::optional<KeyChoice>>(4, choice)};
  };
  const auto swin = [](const WindowAttentionChoice& choice) {
    return SwinOptions{.image_size = 64,
                       .dim = 8,
                       .depths = {2, 2, 2, 2},
                       .heads = {1, 2, 4, 8},
                       .window = 4,
                       .attention = std::vector<WindowAttentionChoice>(8, choice)};
  };
  const EmbeddingChoice shared{.widths = {8}, .shared = {true, true}, .code_size = 4};
  return {{"xcit", xcit({})},
          {"xcit of tokens", xcit({.attention = XcitAttention::kTokens})},
          {"xcit without attention", xcit({.attention = XcitAttention::kNone})},
          {"xcit of f-sne", xcit({.embedding = shared})},
          {"vit", VitOptions{.image_size = 64, .dim = 16, .depth = 4, .heads = 2}},
          {"vit of deit-3", VitOptions{.image_size = 64,
                                       .dim = 16,
                                       .depth = 4,
                                       .heads = 2,
                                       .layer_scale = 0.1,
                                       .has_class_position = false,
                                       .has_distillation_token = true}},
          {"simple-vit", simple({})},
          {"simple-vit of mean shift", simple({Kernel::kGaussian, Probe::kInside, "QKKPW"})},
          {"simple-vit without attention", simple({.kernel = Kernel::kNone})},
          {"key-vit", key({})},
          {"key-vit of charts", key(KeyChoice{.method = KeyMethod::kVanillaK, .charts = 2})},
          {"swin", swin(QkvChoice{})},
          {"swin of mean shift", swin(AttentionChoice{Kernel::kGaussian, Probe::kInside, "QKVPW"})},
          {"swin of charts", swin(KeyChoice{.method = KeyMethod::kSimpleK, .charts = 2})},
          {"swin-v2", SwinV2Options{.image_size = 64,
                                    .dim = 8,
                                    .depths = {1, 1, 2, 1},
                                    .heads = {1, 2, 4, 8},
                                    .window = 4,
                                    .attention = std::vector<CosineAttentionChoice>(5, QkvChoice{})}}};
}

inline ModelOptions backbone_named(const std::string& wanted) {
  for (const auto& [name, options] : backbones())
    if (name == wanted) return options;
  throw std::out_of_range{wanted};
}

}  // namespace abl::models
