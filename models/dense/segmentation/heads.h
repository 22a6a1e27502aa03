// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <utility>
#include <vector>

#include "models/layers/conv_norm_act.h"
#include "models/layers/layers.h"

/// Heads that say a class for every pixel. Parameters are named as in mmsegmentation
/// (mmseg/models/decode_heads and necks), whose settings are the defaults.
namespace abl::models {

using Maps = std::vector<torch::Tensor>;  ///< of a backbone, from fine to coarse

/// What every head ends with: dropout of whole channels, and a 1 x 1 convolution to the classes, which starts
/// normal with deviation 0.01 and bias 0.
/// Parameters: `conv_seg`.
/// Shape: maps of a backbone, from fine to coarse -> logits [B, classes, h, w], of a size of the head's own.
class SegmentationHeadImpl : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const Maps& maps) = 0;

 protected:
  SegmentationHeadImpl(std::int64_t channels, std::int64_t classes, double dropout, torch::Device device);
  /// Shape: x [B, channels, h, w] -> [B, classes, h, w].
  torch::Tensor classify(const torch::Tensor& x);

 private:
  const double dropout_;
  Conv2d conv_seg_{nullptr};
};
using SegmentationHead = Part<SegmentationHeadImpl>;

/// Builds one of its kinds.
template <class Head, class... Arguments>
SegmentationHead new_head(Arguments&&... arguments) {
  return std::shared_ptr<SegmentationHeadImpl>{std::make_shared<Head>(std::forward<Arguments>(arguments)...)};
}

/// A convolution that keeps the size of its map, batch normalisation, ReLU.
ConvNormAct conv_norm_relu(std::int64_t in, std::int64_t out, std::int64_t kernel, torch::Device device);

/// Bilinear, without antialiasing; the map itself where it has that size.
/// Shape: x [B, C, h, w] -> [B, C, rows, columns].
torch::Tensor resize_map(const torch::Tensor& x, std::int64_t rows, std::int64_t columns, bool align_corners);
torch::Tensor resize_like(const torch::Tensor& x, const torch::Tensor& other, bool align_corners);
/// Shape: x [B, C, h, w] -> [B, C, factor·h, factor·w].
torch::Tensor enlarge_map(const torch::Tensor& x, std::int64_t factor, bool align_corners);

struct FcnHeadOptions {
  std::size_t level = 2;  ///< of the maps, from 0, the one that it sees
  std::int64_t channels = 256;
  std::int64_t convolutions = 1;  ///< before the last; 0: the map has `channels`
  double dropout = 0.1;
};

/// A few convolutions over one map: what learns beside another head.
/// Parameters: `convs`, `conv_seg`.
/// Source: "Fully convolutional networks for semantic segmentation"; as mmsegmentation's FCNHead without the
///         map itself beside the convolutions' result.
class FcnHeadImpl : public SegmentationHeadImpl {
 public:
  FcnHeadImpl(const FcnHeadOptions& options, std::int64_t in, std::int64_t classes,
              torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  const std::size_t level_;
  std::vector<ConvNormAct> convs_;
};

struct SemanticFpnOptions {
  std::int64_t channels = 128;
  double dropout = 0.1;
  bool align_corners = false;
};

/// Every map of a pyramid is convolved and made twice as fine until it has the size of the finest, and their
/// sum is classified. A map n times as coarse takes max(1, log2 n) convolutions of 3 x 3.
/// Parameters: `conv_seg`, `scale_heads.I.K` with K even: the odd places enlarge, where they are.
/// Source: "Panoptic feature pyramid networks", section 3.1; as mmsegmentation's FPNHead.
class SemanticFpnHeadImpl : public SegmentationHeadImpl {
 public:
  /// `channels`, `strides`: of the maps, from fine to coarse.
  /// Throws: c10::ValueError when a stride is not the first one doubled some times.
  SemanticFpnHeadImpl(const SemanticFpnOptions& options, const std::vector<std::int64_t>& channels,
                      const std::vector<std::int64_t>& strides, std::int64_t classes,
                      torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  struct ScaleHead {
    std::vector<ConvNormAct> convs{};
    bool enlarges = false;
  };
  torch::Tensor refine(const ScaleHead& head, const torch::Tensor& map) const;

  const bool align_corners_;
  std::vector<ScaleHead> scale_heads_;
};

struct UperNetOptions {
  std::int64_t channels = 512;
  std::vector<std::int64_t> pool_scales{1, 2, 3, 6};  ///< sides of the grids of pooling pyramid
  double dropout = 0.1;
  bool align_corners = false;
  FcnHeadOptions auxiliary{};  ///< the head that learns beside
};

/// The coarsest map beside its means over grids of some sizes, convolved (a pooling pyramid); then a feature
/// pyramid over all maps, whose levels are brought to the finest size, put beside each other and classified.
/// Parameters: `conv_seg`, `psp_modules.I.1`, `bottleneck`, `lateral_convs`, `fpn_convs`, `fpn_bottleneck`.
/// Source: "Unified perceptual parsing for scene understanding", section 3.1; as mmsegmentation's UPerHead.
class UperNetHeadImpl : public SegmentationHeadImpl {
 public:
  /// `channels`: of the maps, from fine to coarse.
  UperNetHeadImpl(const UperNetOptions& options, const std::vector<std::int64_t>& channels,
                  std::int64_t classes, torch::Device device = torch::kCPU);
  torch::Tensor forward(const Maps& maps) override;

 private:
  torch::Tensor pool(const torch::Tensor& map) const;

  const std::vector<std::int64_t> pool_scales_;
  const bool align_corners_;
  std::vector<ConvNormAct> psp_modules_, lateral_convs_, fpn_convs_;
  ConvNormAct bottleneck_{nullptr}, fpn_bottleneck_{nullptr};
};

/// The decoders of SETR stand on maps of a vision transformer that all have the stride of its patches.
/// Source: "Rethinking semantic segmentation from a sequence-to-sequence perspective with transformers",
///         section 3.2; as mmsegmentation's SETRUPHead, MLANeck and SETRMLAHead.
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
