// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/attention/token_attention.h"
#include "models/attention/xcit_attention.h"
#include "models/backbones/classifier.h"
#include "models/backbones/image_features.h"
#include "models/backbones/trunk.h"
#include "models/choices/xcit.h"
#include "models/embedding/patches.h"
#include "models/embedding/positions.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"
#include "models/layers/mlp.h"

namespace abl::models {

/// XCiT's local patch interaction (LPI), without norm and residual: neighbouring tokens exchange, each
/// channel on its own. Depth-wise 3 x 3 convolution, GELU, batch normalisation, depth-wise 3 x 3 convolution.
/// Shape: x [B, rows · columns, dim] -> the same.
/// Source: XCiT section 3.3 (Local patch interaction); the order of GELU and normalisation is the release's.
class LocalPatchInteractionImpl : public torch::nn::Module {
 public:
  explicit LocalPatchInteractionImpl(std::int64_t dim, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns);

 private:
  Conv2d conv1_{nullptr}, conv2_{nullptr};
  BatchNorm2d bn_{nullptr};
};
using LocalPatchInteraction = Part<LocalPatchInteractionImpl>;

struct XcitBlockOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_dim = 0;
  double eta = 1.0;      ///< where LayerScale starts
  Codes codes{nullptr};  ///< those of the model, where the embedding uses such
  XcitChoice choice;
  double drop_rate = 0;  ///< of each branch
};

/// Refuses what has no meaning.
/// Throws: c10::ValueError naming the option, its value and what was expected.
void check(const XcitChoice& choice);

/// A block of XCiT, in the order of the release.
///   x ← x + γ1 attention(LN1 x),  x ← x + γ3 LPI(LN3 x),  x ← x + γ2 MLP(LN2 x)
/// Parameters: `norm1`, `attn`, `gamma1`, `norm3`, `local_mp`, `gamma3`, `norm2`, `mlp`, `gamma2`.
/// Shape: x [B, rows · columns, dim] -> the same.
/// Source: XCiT section 3.3; what is left out: Table 4.
class XcitBlockImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit XcitBlockImpl(const XcitBlockOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns);

 private:
  torch::Tensor drop(const torch::Tensor& branch) const {
    return drop_path(branch, drop_rate_, is_training());
  }
  torch::Tensor attend(const torch::Tensor& x) const {
    return over_tokens_ ? over_tokens_(x) : over_channels_(x);
  }

  const double drop_rate_;
  LayerNorm norm1_{nullptr}, norm3_{nullptr}, norm2_{nullptr};
  CrossCovariance over_channels_{nullptr};  ///< one of the two, or neither
  TokenAttention over_tokens_{nullptr};
  LocalPatchInteraction local_mp_{nullptr};
  Mlp mlp_{nullptr};
  torch::Tensor gamma1_, gamma3_, gamma2_;
};
using XcitBlock = Part<XcitBlockImpl>;

struct XcitOptions {
  using Model = class XcitImpl;
  std::int64_t image_size =
      224;  ///< square, pixels; a multiple of `patch`; the model takes other sizes as well
  std::int64_t patch = 16;
  std::int64_t classes = 1000;  ///< 0: no classifier; in place of logits the model gives its features
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_ratio = 4;
  std::int64_t class_blocks = 2;  ///< blocks of class attention, after the others
  double eta = 1.0;               ///< where LayerScale starts; the release: 1 with 12 blocks, 1e-5 with 24
  bool tokens_norm = true;        ///< class attention normalises all tokens, but in XCiT-N12
  PatchProjection patch_projection = PatchProjection::kConvolutions;
  std::vector<XcitChoice> blocks;  ///< one for each block
  /// Not of class attention, which the release spares.
  DropPathOptions drop_path{.rule = DropPathRule::kConstant};
  DropoutOptions dropout{};
  /// The first so many of them are run again in the backward pass.
  std::int64_t checkpoint_blocks = 0;
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need
};

/// XCiT, the cross-covariance image transformer. All that is ablated inside a block is chosen block by block.
/// Parameters are named as in timm; codes that blocks share are `codes.code`.
/// Linear layers and the class token start normal with deviation 0.02, biases of linear layers at 0, as in
/// the release. In training that returns its logits twice; here they are one tensor.
/// Shape: images [B, 3, H, W], of any size that the patch divides -> [B, classes], or [B, dim] without a
///        classifier.
/// Source: XCiT section 3.3, Tables 1 and 4; SNE Tables 1 and 5.
class XcitImpl : public Classifier, public Trunk, public ImageFeatures {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit XcitImpl(XcitOptions options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images) override;

  std::vector<Level> levels() const override {
    return std::vector<Level>(blocks_.size(), {.channels = options_.dim, .stride = options_.patch});
  }
  std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                        const torch::Tensor& images) override;
  using ImageFeatures::features;
  /// There is one class token, behind all blocks, and it alone.
  torch::Tensor features(const torch::Tensor& images, const FeatureChoice& choice) override;
  std::int64_t feature_width(const FeatureChoice&) const override { return options_.dim; }

  const XcitOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<XcitImpl>(options_, device);
  }

 private:
  void add_head(std::int64_t mlp_dim, torch::Device device);
  /// Shape: images [B, 3, H, W] -> [B, dim].
  torch::Tensor class_token(const torch::Tensor& images);
  /// Shape: map of patches [B, dim, rows, columns] -> [B, rows · columns, dim].
  torch::Tensor tokens_of(const torch::Tensor& map);
  torch::Tensor run(std::size_t block, const torch::Tensor& x, std::int64_t rows, std::int64_t columns) const;

  const XcitOptions options_;
  ConvPatches patch_embed_{nullptr};
  FourierPositions pos_embed_{nullptr};
  torch::Tensor cls_token_;
  std::vector<XcitBlock> blocks_;
  std::vector<ClassAttentionBlock> cls_attn_blocks_;  ///< none without a head
  LayerNorm norm_{nullptr};                           ///< null then
  Linear head_{nullptr};                              ///< likewise, and without classes
};
using Xcit = Part<XcitImpl>;

}  // namespace abl::models
