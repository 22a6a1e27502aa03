// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

namespace abl::models {

/// A trainable matrix as `torch.nn.Linear` starts it: uniform in ±1/√fan-in, fan-in being the last dimension.
/// On the meta device it has a shape and no memory.
torch::Tensor new_weight(torch::IntArrayRef shape, torch::Device device);

/// y = x Wᵀ + b. As `torch::nn::Linear`, which cannot be made on the meta device.
/// Shape: x [..., in] -> [..., out]; weight [out, in], bias [out].
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(std::int64_t in, std::int64_t out, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;
};
TORCH_MODULE(Linear);

/// Normalisation over the last dimension with ε = 1e-5. As `torch::nn::LayerNorm`, which cannot be made on
/// the meta device.
/// Shape: x [..., dim] -> [..., dim].
class LayerNormImpl : public torch::nn::Module {
 public:
  explicit LayerNormImpl(std::int64_t dim, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

}  // namespace abl::models
