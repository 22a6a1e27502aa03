// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <vector>

#include "models/dense/conv_block.h"

namespace abl::models {

struct FpnOptions {
  std::vector<std::int64_t> in;  ///< channels of the backbone's maps, from fine to coarse
  std::int64_t out = 256;        ///< channels of every level
  HeadNorm norm = HeadNorm::kNone;
  bool has_extra_level = true;  ///< every second place of the last, for large anchors
};

/// A feature pyramid: each map by a 1 x 1 convolution, to which the coarser level is added, each of its
/// places as often as it takes; a 3 x 3 convolution on each sum.
/// Parameters: `inner_blocks.N.0`, `layer_blocks.N.0`, as in torchvision; with normalisation `.1` as well.
/// Convolutions start uniform in ±√(3 / fan-in), biases at 0.
/// Shape: maps [B, inᵢ, Hᵢ, Wᵢ] -> as many levels, [B, out, Hᵢ, Wᵢ], and the extra one.
/// Source: "Feature pyramid networks for object detection", section 3.
class FpnImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError where there is no map.
  explicit FpnImpl(const FpnOptions& options, torch::Device device = torch::kCPU);
  std::vector<torch::Tensor> forward(const std::vector<torch::Tensor>& maps);

  const FpnOptions& options() const { return options_; }

 private:
  const FpnOptions options_;
  std::vector<ConvBlock> inner_, layer_;
};
using Fpn = Part<FpnImpl>;

}  // namespace abl::models
