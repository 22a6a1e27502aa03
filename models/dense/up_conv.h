// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/layers/layers.h"

namespace abl::models {

/// A transposed convolution whose stride is its kernel: every place of a map becomes 2 x 2 of them, by
/// itself. Starts as PyTorch starts `ConvTranspose2d`.
/// Shape: x [B, in, H, W] -> [B, out, 2·H, 2·W]; weight [in, out, 2, 2], bias [out].
class UpConv2dImpl : public torch::nn::Module, public WeightOwner {
 public:
  UpConv2dImpl(std::int64_t in, std::int64_t out, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<torch::Tensor> weights() const override { return {weight}; }

  torch::Tensor weight, bias;

 private:
  static constexpr std::int64_t kFactor = 2;
};
using UpConv2d = Part<UpConv2dImpl>;

}  // namespace abl::models
