// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/dense/segmentation/head.h"

namespace abl::models {

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

}  // namespace abl::models
