// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "models/attention/class_attention.h"
#include "models/classifier.h"
#include "models/embedding/conv_patches.h"
#include "models/embedding/fourier_positions.h"
#include "models/xcit_block.h"

namespace abl::models {

struct XcitOptions {
  std::int64_t image_size =
      224;  ///< square, pixels; a multiple of `patch`; the model takes other sizes as well
  std::int64_t patch = 16;
  std::int64_t classes = 1000;
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
  /// The first so many of them are run again in the backward pass.
  std::int64_t checkpoint_blocks = 0;
};

/// XCiT, the cross-covariance image transformer. All that is ablated inside a block is chosen block by block.
/// Parameters are named as in timm; codes that blocks share are `codes.code`.
/// Linear layers and the class token start normal with deviation 0.02, biases of linear layers at 0, as in
/// the release. In training that returns its logits twice; here they are one tensor.
/// Shape: images [B, 3, H, W], of any size that the patch divides -> [B, classes].
/// Source: XCiT section 3.3, Tables 1 and 4; SNE Tables 1 and 5.
class XcitImpl : public Classifier {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit XcitImpl(XcitOptions options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images) override;

  const XcitOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<XcitImpl>(options_, device);
  }

 private:
  torch::Tensor run(std::size_t block, const torch::Tensor& x, std::int64_t rows, std::int64_t columns) const;

  const XcitOptions options_;
  ConvPatches patch_embed_{nullptr};
  FourierPositions pos_embed_{nullptr};
  torch::Tensor cls_token_;
  std::vector<XcitBlock> blocks_;
  std::vector<ClassAttentionBlock> cls_attn_blocks_;
  LayerNorm norm_{nullptr};
  Linear head_{nullptr};
};
using Xcit = Part<XcitImpl>;

}  // namespace abl::models
