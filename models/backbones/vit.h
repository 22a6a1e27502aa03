// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/attention/token_attention.h"
#include "models/backbones/classifier.h"
#include "models/backbones/image_features.h"
#include "models/backbones/trunk.h"
#include "models/embedding/patches.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/mlp.h"
#include "models/plugins/plugged.h"

namespace abl::models {

/// By default ViT-S/16. ViT-Ti: dim 192, 3 heads; ViT-B: dim 768, 12 heads.
struct VitOptions {
  using Model = class VitImpl;
  std::int64_t image_size = 224;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 16;
  std::int64_t classes = 1000;  ///< 0: no classifier; in place of logits the model gives its features
  std::int64_t dim = 384;
  std::int64_t depth = 12;
  std::int64_t heads = 6;  ///< divides `dim`
  std::int64_t mlp_ratio = 4;
  bool has_qkv_bias = true;
  double layer_scale = 0;               ///< where LayerScale of both branches starts; 0: there is none
  bool has_class_position = true;       ///< DeiT-III's class token joins after the positions, without one
  bool has_distillation_token = false;  ///< a second token like the class token, with a head of its own
  PluginUse plugin{};  ///< what takes the attention's place in each layer; by default nothing does
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need

  std::int64_t patches() const { return (image_size / patch) * (image_size / patch); }
  /// Leading tokens that are no patches.
  std::int64_t prefix() const { return has_distillation_token ? 2 : 1; }
  std::int64_t positions() const { return patches() + (has_class_position ? prefix() : 0); }
};

/// A factor for each channel of a branch.
/// Parameters: `gamma` [dim].
/// Shape: x [..., dim] -> [..., dim].
/// Source: "Going deeper with image transformers", section 2.
class LayerScaleImpl : public torch::nn::Module {
 public:
  LayerScaleImpl(std::int64_t dim, double start, torch::Device device = torch::kCPU)
      : gamma_{register_parameter("gamma", new_constant({dim}, start, device))} {}
  torch::Tensor forward(const torch::Tensor& x) { return x * gamma_; }

 private:
  const torch::Tensor gamma_;
};
using LayerScale = Part<LayerScaleImpl>;

/// One layer with its residuals: x += ls1 attn(norm1 x), x += ls2 mlp(norm2 x).
/// Shape: x [B, N, dim] -> [B, N, dim].
class VitBlockImpl : public torch::nn::Module {
 public:
  explicit VitBlockImpl(const VitOptions& options, std::int64_t layer = 0, torch::Device device = torch::kCPU,
                        double drop_rate = 0);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const double drop_rate_;
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  TokenAttention attn_{nullptr};
  PluggedAttention plugged_;  ///< in its place
  Mlp mlp_{nullptr};
  LayerScale ls1_{nullptr}, ls2_{nullptr};  ///< null where there is none
};
using VitBlock = Part<VitBlockImpl>;

/// The vision transformer with a class token and learned positions. Parameters are named as in timm, and
/// start as timm's: linear layers normal with deviation 0.02 and biases at 0, positions and the distillation
/// token normal with deviation 0.02, the class token with 1e-6.
/// Shape: images [B, 3, S, S] -> [B, classes], or [B, dim] without a classifier.
/// Source: Dosovitskiy et al. (ICLR 2021), section 3.1; sizes and distillation token as in DeiT (ICML 2021),
///         sections 4 and 5.1, whose two classifiers are evaluated by their mean; LayerScale and class token
///         as in DeiT III (ECCV 2022).
class VitImpl : public Classifier, public Trunk, public ImageFeatures {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit VitImpl(const VitOptions& options, torch::Device device = torch::kCPU);

  torch::Tensor forward(const torch::Tensor& images) override { return answer(images).combined(); }
  Answers answer(const torch::Tensor& images) override;

  std::vector<Level> levels() const override {
    return std::vector<Level>(blocks_.size(), {.channels = options_.dim, .stride = options_.patch});
  }
  /// Positions of images of another size than the model's are resized to theirs.
  std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                        const torch::Tensor& images) override;
  using ImageFeatures::features;
  /// Positions likewise.
  torch::Tensor features(const torch::Tensor& images, const FeatureChoice& choice) override;
  std::int64_t feature_width(const FeatureChoice& choice) const override {
    return options_.dim * (choice.blocks + (choice.has_patch_mean ? 1 : 0));
  }

  const VitOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<VitImpl>(options_, device);
  }

 private:
  /// Shape: patches [B, rows · columns, dim] -> [B, prefix + rows · columns, dim].
  torch::Tensor tokens_of(torch::Tensor patches, std::int64_t rows, std::int64_t columns);
  torch::Tensor run(std::int64_t layer, const torch::Tensor& x) const;

  const VitOptions options_;
  torch::Tensor cls_token_, pos_embed_;
  torch::Tensor dist_token_;  ///< undefined where there is none
  PatchEmbed patch_embed_{nullptr};
  std::vector<VitBlock> blocks_;
  LayerNorm norm_{nullptr};    ///< null without a head
  Linear head_{nullptr};       ///< likewise, and without classes
  Linear head_dist_{nullptr};  ///< and without a distillation token
};
using Vit = Part<VitImpl>;

}  // namespace abl::models
