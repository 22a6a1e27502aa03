// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/dense/segmentation/head.h"

namespace abl::models {

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

}  // namespace abl::models
