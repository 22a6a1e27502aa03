// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/attention/token_attention.h"
#include "models/backbones/classifier.h"
#include "models/embedding/patches.h"
#include "models/layers/drop_path.h"
#include "models/layers/mlp.h"

namespace abl::models {

/// By default ViT-S/16. ViT-Ti: dim 192, 3 heads; ViT-B: dim 768, 12 heads.
struct VitOptions {
  using Model = class VitImpl;
  std::int64_t image_size = 224;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 16;
  std::int64_t classes = 1000;
  std::int64_t dim = 384;
  std::int64_t depth = 12;
  std::int64_t heads = 6;  ///< divides `dim`
  std::int64_t mlp_ratio = 4;
  bool has_qkv_bias = true;
  DropPathOptions drop_path{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass

  std::int64_t tokens() const { return (image_size / patch) * (image_size / patch) + 1; }
};

/// One layer with its residuals: x += attn(norm1 x), x += mlp(norm2 x).
/// Shape: x [B, N, dim] -> [B, N, dim].
class VitBlockImpl : public torch::nn::Module {
 public:
  explicit VitBlockImpl(const VitOptions& options, torch::Device device = torch::kCPU, double drop_rate = 0);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const double drop_rate_;
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  TokenAttention attn_{nullptr};
  Mlp mlp_{nullptr};
};
using VitBlock = Part<VitBlockImpl>;

/// The vision transformer with a class token and learned positions. Parameters are named as in timm, and
/// start as timm's: linear layers normal with deviation 0.02 and biases at 0, positions normal with deviation
/// 0.02, the class token with 1e-6.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Source: Dosovitskiy et al. (ICLR 2021), section 3.1; sizes as in DeiT.
class VitImpl : public Classifier {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit VitImpl(const VitOptions& options, torch::Device device = torch::kCPU);

  torch::Tensor forward(const torch::Tensor& images) override;

  const VitOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<VitImpl>(options_, device);
  }

 private:
  const VitOptions options_;
  torch::Tensor cls_token_, pos_embed_;
  PatchEmbed patch_embed_{nullptr};
  std::vector<VitBlock> blocks_;
  LayerNorm norm_{nullptr};
  Linear head_{nullptr};
};
using Vit = Part<VitImpl>;

}  // namespace abl::models
