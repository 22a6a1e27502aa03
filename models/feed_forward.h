// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/layers.h"

namespace abl::models {

/// The MLP of a block, without the residual: LayerNorm, Linear, GELU (exact), Linear.
/// Shape: x [B, N, dim] -> [B, N, dim].
class FeedForwardImpl : public torch::nn::Module {
 public:
  FeedForwardImpl(std::int64_t dim, std::int64_t hidden, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  LayerNorm norm{nullptr};
  Linear fc1{nullptr}, fc2{nullptr};
};
using FeedForward = Part<FeedForwardImpl>;

}  // namespace abl::models
