// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <variant>
#include <vector>

#include "models/attention/manifold_key.h"
#include "models/attention/shared_attention.h"
#include "models/attention/window_attention.h"
#include "models/backbones/swin_parts.h"

namespace abl::models {

/// The attention of a block: Swin's own, an ablated one, or one with a manifold key.
using WindowAttentionChoice = std::variant<QkvChoice, AttentionChoice, KeyChoice>;

/// The sizes are by default Swin-T's; the attention of its 12 blocks has no default.
struct SwinOptions {
  using Model = class SwinImpl;
  std::int64_t image_size = 224;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 4;
  std::int64_t classes = 1000;
  std::int64_t dim = 96;  ///< of the first stage; each further stage doubles it
  std::vector<std::int64_t> depths{2, 2, 6, 2};
  std::vector<std::int64_t> heads{3, 6, 12, 24};
  std::int64_t window = 7;  ///< side in tokens; a smaller map is one window
  std::int64_t mlp_ratio = 4;
  std::vector<WindowAttentionChoice> attention;  ///< one for each block of all stages
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need
};

/// The Swin transformer. The attention is chosen block by block; a block with `Kernel::kNone` has neither the
/// attention branch nor its norm. Parameters are named as in timm.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Source: Swin section 3; MSF Table 5; manifold key section 5.
class SwinImpl : public SwinTrunkImpl {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit SwinImpl(SwinOptions options, torch::Device device = torch::kCPU);

  const SwinOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<SwinImpl>(options_, device);
  }

 private:
  const SwinOptions options_;
};
using Swin = Part<SwinImpl>;

}  // namespace abl::models
