// SPDX-License-Identifier: Apache-2.0
#include "models/layers.h"

#include <cmath>

namespace abl::models {
namespace {

torch::Tensor new_uniform(torch::IntArrayRef shape, std::int64_t fan_in, torch::Device device) {
  const torch::NoGradGuard no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  auto values = torch::empty(shape, torch::device(device));
  if (!device.is_meta()) values.uniform_(-bound, bound);
  return values.requires_grad_();
}

}  // namespace

torch::Tensor new_weight(torch::IntArrayRef shape, torch::Device device) {
  return new_uniform(shape, shape.back(), device);
}

LinearImpl::LinearImpl(std::int64_t in, std::int64_t out, torch::Device device) {
  weight = register_parameter("weight", new_weight({out, in}, device));
  bias = register_parameter("bias", new_uniform({out}, in, device));
}

torch::Tensor LinearImpl::forward(const torch::Tensor& x) { return torch::linear(x, weight, bias); }

LayerNormImpl::LayerNormImpl(std::int64_t dim, torch::Device device) {
  weight = register_parameter("weight", torch::ones({dim}, torch::device(device)));
  bias = register_parameter("bias", torch::zeros({dim}, torch::device(device)));
}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& x) {
  return torch::layer_norm(x, weight.sizes(), weight, bias, /*eps=*/1e-5);
}

}  // namespace abl::models
