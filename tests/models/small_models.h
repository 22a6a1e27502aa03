// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/registry.h"

namespace abl::models {

inline const AttentionChoice kMeanShift{
    .kernel = Kernel::kGaussian, .probe = Probe::kInside, .share = "QKVPW"};

/// A small model of each family, 64 × 64 images.
inline std::vector<std::pair<std::string, ModelOptions>> small_models() {
  const EmbeddingChoice sne{.widths = {32}, .shared = {false, false}};
  const EmbeddingChoice p_sne{.widths = {32}, .shared = {false, true}};
  const EmbeddingChoice f_sne{.widths = {32}, .shared = {true, true}, .code_size = 8};
  return {{"simple-vit", SimpleVitOptions{.image_size = 64,
                                          .patch = 8,
                                          .classes = 10,
                                          .dim = 96,
                                          .depth = 3,
                                          .heads = 3,
                                          .dim_head = 32,
                                          .mlp_dim = 192,
                                          .attention = {AttentionChoice{}, kMeanShift,
                                                        AttentionChoice{.kernel = Kernel::kNone}}}},
          {"vit", VitOptions{.image_size = 64, .patch = 8, .classes = 10, .dim = 96, .depth = 3, .heads = 3}},
          {"key-vit",
           KeyVitOptions{.image_size = 64,
                         .patch = 8,
                         .classes = 10,
                         .dim = 96,
                         .heads = 3,
                         .mlp_dim = 384,
                         .keys = {KeyChoice{.method = KeyMethod::kSpatialK, .charts = 4}, std::nullopt}}},
          {"swin", SwinOptions{.image_size = 64,
                               .classes = 10,
                               .dim = 48,
                               .depths = {2, 2},
                               .heads = {3, 6},
                               .window = 4,
                               .attention = {QkvChoice{}, QkvChoice{}, kMeanShift, QkvChoice{}}}},
          {"swin-v2", SwinV2Options{.image_size = 64,
                                    .classes = 10,
                                    .dim = 48,
                                    .depths = {2, 2},
                                    .heads = {3, 6},
                                    .window = 4,
                                    .attention = {4, QkvChoice{}}}},
          {"xcit", XcitOptions{.image_size = 64,
                               .patch = 8,
                               .classes = 10,
                               .dim = 64,
                               .heads = 4,
                               .blocks = {{}, {.embedding = f_sne}, {.l2_norm = false}}}},
          {"xcit with other embeddings", XcitOptions{.image_size = 64,
                                                     .patch = 8,
                                                     .classes = 10,
                                                     .dim = 64,
                                                     .heads = 4,
                                                     .blocks = {{.embedding = sne}, {.embedding = p_sne}}}},
          {"resnet", ResNetOptions{.image_size = 64, .classes = 10, .layers = {1, 1, 1, 1}}},
          {"efficientnet", EfficientNetOptions{.image_size = 64, .classes = 10}},
          {"regnet", RegNetOptions{.image_size = 64,
                                   .classes = 10,
                                   .stages = {{.depth = 1, .width = 48, .group_width = 16},
                                              {.depth = 2, .width = 96, .group_width = 16}}}}};
}

inline ModelOptions small_model(const std::string& wanted) {
  for (auto& [name, options] : small_models())
    if (name == wanted) return std::move(options);
  throw std::out_of_range{wanted};
}

}  // namespace abl::models
