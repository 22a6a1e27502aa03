// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/layers/layers.h"

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

/// The MLP of a block, without norm and residual: `fc1`, GELU (exact), `fc2`, both with bias.
/// Shape: x [..., dim] -> [..., dim].
class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl(std::int64_t dim, std::int64_t hidden, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
};
using Mlp = Part<MlpImpl>;

}  // namespace abl::models
