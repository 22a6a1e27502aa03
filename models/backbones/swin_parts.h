// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "models/attention/window_attention.h"
#include "models/attention/windows.h"
#include "models/backbones/classifier.h"
#include "models/backbones/trunk.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"

/// What both Swin transformers consist of, but for the blocks.
namespace abl::models {

/// Images to a map of normalised patches.
/// Parameters: `proj` (one convolution), `norm`.
/// Shape: [B, 3, S, S] -> [B, S/patch, S/patch, dim].
class SwinPatchEmbedImpl : public torch::nn::Module {
 public:
  SwinPatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                     torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images);
  /// Shape: images [B, 3, H, W] of any size -> [B, H/patch, W/patch, dim].
  /// Throws: c10::ValueError when the patch does not divide the images.
  torch::Tensor map_of(const torch::Tensor& images);

 private:
  const std::int64_t image_size_, patch_;
  Conv2d proj_{nullptr};
  LayerNorm norm_{nullptr};
};
using SwinPatchEmbed = Part<SwinPatchEmbedImpl>;

/// Where a part normalises: version 1 before its linear layer, version 2 after it.
enum class NormPlace { kBefore, kAfter };

/// Four neighbours become one token of twice the width; a map of an odd side is filled up with zeros.
/// Parameters: `norm`, `reduction` (without bias).
/// Shape: [B, R, C, dim] -> [B, ⌈R/2⌉, ⌈C/2⌉, 2·dim].
class SwinPatchMergingImpl : public torch::nn::Module {
 public:
  SwinPatchMergingImpl(std::int64_t dim, NormPlace place, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& map);

 private:
  const NormPlace place_;
  LayerNorm norm_{nullptr};
  Linear reduction_{nullptr};
};
using SwinPatchMerging = Part<SwinPatchMergingImpl>;

/// What a block is built for.
struct SwinBlockPlace {
  std::int64_t index = 0;  ///< over all stages
  std::int64_t dim = 0, heads = 0, mlp_dim = 0;
  WindowGrid grid;
  bool is_shifted = false;  ///< every second block of a stage: where there is more than one window
  double drop_rate = 0;
  std::int64_t pretrained_window = 0;  ///< of version 2; 0: the grid's
};

/// One block with its residuals.
/// Shape: [B, R, C, dim] -> the same.
class SwinBlockImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& map) = 0;

 protected:
  explicit SwinBlockImpl(const SwinBlockPlace& place) : place_{place} {}

  /// Of a block that attends: the mask of its windows, `attn_mask`, where they are shifted.
  void register_mask(torch::Device device);
  /// Attention in the windows of a map: those of the block's own grid, and windows of the same side over a
  /// map of another size.
  torch::Tensor attend(const WindowAttention& attention, const torch::Tensor& map) const;
  torch::Tensor drop(const torch::Tensor& branch) const {
    return drop_path(branch, place_.drop_rate, is_training());
  }

 private:
  const SwinBlockPlace place_;
  torch::Tensor mask_;
};
using SwinBlock = Part<SwinBlockImpl>;

/// The blocks of one width, after the merging that makes it.
/// Parameters: `downsample` (none in the first stage), `blocks`.
/// Shape: [B, R, C, dim] -> [B, ⌈R/2⌉, ⌈C/2⌉, 2·dim], or the same where nothing is merged.
class SwinStageImpl : public torch::nn::Module {
 public:
  /// `recomputed`: of the blocks, the first so many are run again in the backward pass; may be more or less
  /// than there are.
  SwinStageImpl(SwinPatchMerging downsample, std::vector<SwinBlock> blocks, std::int64_t recomputed = 0);
  torch::Tensor forward(const torch::Tensor& map);

 private:
  SwinPatchMerging downsample_;
  std::vector<SwinBlock> blocks_;
  const std::int64_t recomputed_;
};
using SwinStage = Part<SwinStageImpl>;

/// The mean over the map, then one linear layer `fc`, with dropout before it.
/// Shape: [B, S, S, dim] -> [B, classes].
class SwinHeadImpl : public torch::nn::Module {
 public:
  SwinHeadImpl(std::int64_t dim, std::int64_t classes, torch::Device device = torch::kCPU,
               double dropout = 0);
  torch::Tensor forward(const torch::Tensor& map);

 private:
  const double dropout_;
  Linear fc_{nullptr};
};
using SwinHead = Part<SwinHeadImpl>;

struct SwinSizes {
  std::int64_t image_size = 0, patch = 0, classes = 0, dim = 0;
  std::vector<std::int64_t> depths, heads;
  std::int64_t window = 0, mlp_ratio = 0;
  std::size_t choices = 0;  ///< of attention
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  std::int64_t checkpoint_blocks = 0;
  std::vector<std::int64_t> pretrained_window{};  ///< of version 2
  bool has_head = true;
};

template <class Options>
SwinSizes sizes_of(const Options& options) {
  return {.image_size = options.image_size,
          .patch = options.patch,
          .classes = options.classes,
          .dim = options.dim,
          .depths = options.depths,
          .heads = options.heads,
          .window = options.window,
          .mlp_ratio = options.mlp_ratio,
          .choices = options.attention.size(),
          .drop_path = options.drop_path,
          .dropout = options.dropout,
          .checkpoint_blocks = options.checkpoint_blocks,
          .has_head = options.has_head};
}

using MakeSwinBlock = std::function<SwinBlock(const SwinBlockPlace& place)>;

/// Blocks of one class, each with the choice of its index.
template <class Block, class Choice>
MakeSwinBlock blocks_with(std::vector<Choice> choices, torch::Device device) {
  return [choices = std::move(choices), device](const SwinBlockPlace& place) -> SwinBlock {
    const auto& choice = choices.at(static_cast<std::size_t>(place.index));
    return std::shared_ptr<SwinBlockImpl>{std::make_shared<Block>(place, choice, device)};
  };
}

/// The stages around the blocks: each stage but the first halves the map and doubles the width.
/// Linear layers start normal with deviation 0.02 and biases at 0, as in the releases.
/// Parameters: `patch_embed`, `layers`, `norm`, `head`; without a head, in place of the last two, a norm for
/// the map of each stage: `norm0`, `norm1`, … as in the release for dense tasks.
/// Shape: images [B, 3, S, S] -> [B, classes].
class SwinTrunkImpl : public Classifier, public Trunk {
 public:
  torch::Tensor forward(const torch::Tensor& images) override;

  std::vector<Level> levels() const override;
  /// Throws: c10::ValueError also where the model has a head: its stages have no norms then.
  std::vector<torch::Tensor> maps_after(const std::vector<std::int64_t>& layers,
                                        const torch::Tensor& images) override;

 protected:
  /// Throws: c10::ValueError when the sizes do not fit together.
  SwinTrunkImpl(SwinSizes sizes, NormPlace merging, const MakeSwinBlock& make_block, torch::Device device);

 private:
  const SwinSizes sizes_;
  SwinPatchEmbed patch_embed_{nullptr};
  std::vector<SwinStage> stages_;
  std::vector<LayerNorm> stage_norms_;  ///< none with a head
  LayerNorm norm_{nullptr};             ///< null without a head
  SwinHead head_{nullptr};              ///< likewise
};

}  // namespace abl::models
