// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace abl::models {

/// One parameter of a model.
struct ParameterEntry {
  std::string name;  ///< "attn.0.mat.Q"
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  bool is_weight = false;  ///< the matrix of a linear layer or a convolution: no bias, norm, token or table
};

/// The parameters of a real module, in the order of registration.
std::vector<ParameterEntry> list_parameters(const torch::nn::Module& model);

}  // namespace abl::models
