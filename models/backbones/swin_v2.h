// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <variant>
#include <vector>

#include "models/attention/manifold_key.h"
#include "models/attention/window_attention.h"
#include "models/backbones/swin_parts.h"

namespace abl::models {

/// The attention of a block: Swin V2's own, or one with a manifold key.
using CosineAttentionChoice = std::variant<QkvChoice, KeyChoice>;

/// The sizes are by default those of SwinV2-T with windows of 8 x 8; the attention of its 12 blocks has no
/// default.
struct SwinV2Options {
  using Model = class SwinV2Impl;
  std::int64_t image_size = 256;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 4;
  std::int64_t classes = 1000;
  std::int64_t dim = 96;  ///< of the first stage; each further stage doubles it
  std::vector<std::int64_t> depths{2, 2, 6, 2};
  std::vector<std::int64_t> heads{3, 6, 12, 24};
  std::int64_t window = 8;  ///< side in tokens; a smaller map is one window
  /// Of each stage the side of the windows that weights come from, where the model's own are of another size:
  /// the scale of relative positions is that side's. None: the model's own.
  std::vector<std::int64_t> pretrained_window{};
  std::int64_t mlp_ratio = 4;
  std::vector<CosineAttentionChoice> attention;  ///< one for each block of all stages
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need
};

/// The Swin transformer V2: cosine attention, and norms at the end of each branch, which start at 0, so that
/// every block starts as the identity. Parameters are named as in timm.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Source: Swin V2 section 3; manifold key section 5.
class SwinV2Impl : public SwinTrunkImpl {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit SwinV2Impl(SwinV2Options options, torch::Device device = torch::kCPU);

  const SwinV2Options& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<SwinV2Impl>(options_, device);
  }

 private:
  const SwinV2Options options_;
};
using SwinV2 = Part<SwinV2Impl>;

}  // namespace abl::models
