// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/attention/shared_attention.h"
#include "models/backbones/classifier.h"
#include "models/backbones/trunk.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"
#include "models/layers/mlp.h"

namespace abl::models {

struct SimpleVitOptions {
  using Model = class SimpleVitImpl;
  std::int64_t image_size = 0;  ///< square, pixels; a multiple of `patch`
  std::int64_t patch = 16;
  std::int64_t classes = 0;
  std::int64_t dim = 0;
  std::int64_t depth = 0;
  std::int64_t heads = 0;
  std::int64_t dim_head = 64;
  std::int64_t mlp_dim = 0;
  std::vector<AttentionChoice> attention;  ///< one for each layer, `depth` of them
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;  ///< the first so many are run again in the backward pass
  bool has_head = true;  ///< false: it gives maps and no logits, and has nothing that these alone need

  std::int64_t tokens() const { return (image_size / patch) * (image_size / patch); }
};

/// The simple ViT of the MSF paper: no class token, fixed sine and cosine positions, mean over the tokens,
/// one linear head. The attention is chosen layer by layer; a layer with `Kernel::kNone` has no attention
/// branch and no parameters of one.
/// Shape: images [B, 3, S, S] -> [B, classes].
/// Source: MSF section 3, Table 5; placement by layer: supplement Table C.
class SimpleVitImpl : public Classifier, public Trunk {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit SimpleVitImpl(SimpleVitOptions options, torch::Device device = torch::kCPU);

  torch::Tensor forward(const torch::Tensor& images) override;
  std::vector<Level> levels() const override {
    return std::vector<Level>(feed_forward_.size(), {.channels = options_.dim, .stride = options_.patch});
  }
  /// Positions of images of another size than the model's are those of their own map.
  std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                        const torch::Tensor& images) override;
  /// The tokens that enter the first layer.
  /// Shape: [B, 3, H, W] -> [B, N, dim].
  /// Throws: c10::ValueError for images that the patch does not divide.
  torch::Tensor embed_images(const torch::Tensor& images);
  /// One layer with its residuals.
  /// Shape: x [B, N, dim] -> [B, N, dim].
  torch::Tensor layer(std::int64_t index, const torch::Tensor& x);

  const SimpleVitOptions& options() const { return options_; }
  /// The attention of a layer; a null holder where the layer has none.
  SharedAttention attention(std::int64_t index) const { return attention_.at(index); }
  FeedForward feed_forward(std::int64_t index) const { return feed_forward_.at(index); }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<SimpleVitImpl>(options_, device);
  }

 private:
  /// Shape: [rows · columns, dim].
  torch::Tensor positions(std::int64_t rows, std::int64_t columns) const;

  const SimpleVitOptions options_;
  LayerNorm embed_norm1_{nullptr}, embed_norm2_{nullptr};
  Linear embed_{nullptr};
  LayerNorm head_norm_{nullptr};  ///< null without a head
  Linear head_{nullptr};          ///< likewise
  FixedTable positions_{nullptr};
  std::vector<SharedAttention> attention_;
  std::vector<FeedForward> feed_forward_;
  std::vector<double> drop_rates_;  ///< of each layer
};
using SimpleVit = Part<SimpleVitImpl>;

}  // namespace abl::models
