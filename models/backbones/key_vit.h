// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "models/attention/manifold_key.h"
#include "models/backbones/classifier.h"
#include "models/backbones/trunk.h"
#include "models/choices/key.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/mlp.h"
#include "models/projection/role_matrices.h"

namespace abl::models {

/// The sizes are by default those of the manifold key paper's ViT-S/16, but for its 12 layers, which `keys`
/// makes. ViT-B: dim 768, 12 heads, MLP 3072.
struct KeyVitOptions {
  using Model = class KeyVitImpl;
  std::int64_t image_size = 224;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 16;
  std::int64_t classes = 1000;
  std::int64_t dim = 384;
  std::int64_t heads = 6;  ///< divides `dim`
  std::int64_t mlp_dim = 1536;
  std::vector<std::optional<KeyChoice>> keys;  ///< one for each layer; nothing: as kLinear
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need

  std::int64_t depth() const { return static_cast<std::int64_t>(keys.size()); }
  std::int64_t tokens() const { return (image_size / patch) * (image_size / patch) + 1; }
};

/// Attention between tokens, without the residual, whose key is a linear layer or a manifold key.
/// Parameters: `norm`, `to_q` and `to_v` without bias, `key`, `proj` with bias.
/// Shape: x [B, N, dim] -> [B, N, dim].
class KeyAttentionImpl : public torch::nn::Module, public RoleMatrices {
 public:
  KeyAttentionImpl(const KeyVitOptions& options, const std::optional<KeyChoice>& choice,
                   torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<RoleMatrix> role_matrices() const override;

 private:
  const std::int64_t heads_;
  LayerNorm norm_{nullptr};
  Linear to_q_{nullptr}, to_v_{nullptr}, proj_{nullptr};
  Linear linear_key_{nullptr};         ///< one of the two keys is null
  ManifoldKey manifold_key_{nullptr};  ///< both are `key`
};
using KeyAttention = Part<KeyAttentionImpl>;

/// The ViT with class token and learned positions of the manifold key paper; the key is chosen layer by
/// layer. Norms around the patch projection, query, key and value without bias. Linear layers start as
/// PyTorch starts them, class token and positions normal with deviation 1, as in the library the paper names.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Source: manifold key sections 4 and 5; the base model follows from the printed counts.
class KeyVitImpl : public Classifier, public Trunk {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit KeyVitImpl(KeyVitOptions options, torch::Device device = torch::kCPU);

  torch::Tensor forward(const torch::Tensor& images) override;

  std::vector<Level> levels() const override {
    return std::vector<Level>(attention_.size(), {.channels = options_.dim, .stride = options_.patch});
  }
  /// Positions of images of another size than the model's are resized to theirs.
  std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                        const torch::Tensor& images) override;

  const KeyVitOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<KeyVitImpl>(options_, device);
  }

 private:
  /// Shape: images [B, 3, H, W] -> [B, 1 + H/patch · W/patch, dim].
  torch::Tensor embed_images(const torch::Tensor& images);
  torch::Tensor layer(std::size_t index, const torch::Tensor& x) const;

  const KeyVitOptions options_;
  LayerNorm embed_norm1_{nullptr}, embed_norm2_{nullptr};
  Linear embed_{nullptr};
  LayerNorm norm_{nullptr};  ///< null without a head
  Linear head_{nullptr};     ///< likewise
  torch::Tensor cls_, pos_;
  std::vector<KeyAttention> attention_;
  std::vector<FeedForward> feed_forward_;
  const std::vector<double> drop_rates_;  ///< of each layer
};
using KeyVit = Part<KeyVitImpl>;

}  // namespace abl::models
