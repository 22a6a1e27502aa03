// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <vector>

#include "models/dense/segmentation/head.h"

/// The decoders of SETR, on maps of a vision transformer that all have the stride of its patches.
/// Source: "Rethinking semantic segmentation from a sequence-to-sequence perspective with transformers",
///         section 3.2; as mmsegmentation's SETRUPHead, MLANeck and SETRMLAHead.
namespace abl::models {

enum class SetrDecoder {
  kNaive,  ///< of the last map: a 1 x 1 convolution, and to the pixels at once
  kPup,    ///< of the last map: progressive upsampling, a 3 x 3 convolution for each doubling
  kMla,    ///< multi-level aggregation of all four maps; what MSF Table 7 calls several feature maps
};

struct SetrOptions {
  SetrDecoder decoder = SetrDecoder::kMla;
  std::int64_t channels = 256;      ///< of the convolutions; of MLA those of its aggregated maps
  std::int64_t mla_channels = 128;  ///< of each map before MLA puts them beside each other
  double dropout = 0;
  bool align_corners = false;
};

struct SetrUpOptions {
  std::size_t level = 3;  ///< of the maps, from 0, the one that it sees
  std::int64_t channels = 256;
  std::int64_t convolutions = 1;
  std::int64_t kernel = 1;
  std::int64_t enlarge = 4;  ///< factor after each convolution
  double dropout = 0;
  bool align_corners = false;
};

/// The decoders of one map.
/// Parameters: `conv_seg`, `norm`, `up_convs.I.0`.
class SetrUpHeadImpl : public SegmentationHeadImpl {
 public:
  SetrUpHeadImpl(const SetrUpOptions& options, std::int64_t in, std::int64_t classes,
                 torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  const SetrUpOptions options_;
  LayerNorm norm_{nullptr};
  std::vector<ConvNormAct> up_convs_;
};

/// Every map normalised and brought to `channels`; from the last to the first each takes what came before
/// it; a 3 x 3 convolution on each sum. Results stand in that order: of the last map first.
/// Parameters: `norm.I`, `mla.channel_proj.I`, `mla.feat_extract.I`.
/// Shape: maps [B, inᵢ, h, w] -> as many, [B, channels, h, w].
class MlaNeckImpl : public torch::nn::Module {
 public:
  MlaNeckImpl(const std::vector<std::int64_t>& in, std::int64_t channels, torch::Device device = torch::kCPU);
  Maps forward(const Maps& maps);

 private:
  std::vector<LayerNorm> norms_;
  std::vector<ConvNormAct> channel_proj_, feat_extract_;
};
using MlaNeck = Part<MlaNeckImpl>;

/// Two 3 x 3 convolutions on each map, four times as fine; all beside each other.
/// Parameters: `conv_seg`, `up_convs.I.0`, `up_convs.I.1`.
class SetrMlaHeadImpl : public SegmentationHeadImpl {
 public:
  /// `levels`: maps that there are.
  SetrMlaHeadImpl(const SetrOptions& options, std::size_t levels, std::int64_t classes,
                  torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  struct Refinement {
    ConvNormAct first{nullptr}, second{nullptr};
  };
  const bool align_corners_;
  std::vector<Refinement> up_convs_;
};

/// The decoder of these options, behind `MlaNeck` where they say so.
SegmentationHead new_setr_head(const SetrOptions& options, const std::vector<std::int64_t>& channels,
                               std::int64_t classes, torch::Device device = torch::kCPU);

/// The heads that learn beside it: one for each map but the last that it sees itself; of MLA one for each
/// aggregated map. They have two convolutions as mmsegmentation's settings for ADE20K, of MLA none.
std::vector<SegmentationHead> new_setr_auxiliary_heads(const SetrOptions& options,
                                                       const std::vector<std::int64_t>& channels,
                                                       std::int64_t classes,
                                                       torch::Device device = torch::kCPU);

}  // namespace abl::models
