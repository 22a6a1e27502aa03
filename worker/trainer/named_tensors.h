// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

namespace abl::trainer {

/// Weights by their names in the model, in its order.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// The gradients of those that have one.
inline std::vector<torch::Tensor> gradients_of(const NamedTensors& weights) {
  std::vector<torch::Tensor> gradients;
  for (const auto& [name, weight] : weights)
    if (weight.grad().defined()) gradients.push_back(weight.grad());
  return gradients;
}

}  // namespace abl::trainer
