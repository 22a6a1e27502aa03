// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/layers.h"

namespace abl::models {

/// XCiT's local patch interaction (LPI), without norm and residual: neighbouring tokens exchange, each
/// channel on its own. Depth-wise 3 x 3 convolution, GELU, batch normalisation, depth-wise 3 x 3 convolution.
/// Shape: x [B, rows · columns, dim] -> the same.
/// Source: XCiT section 3.3 (Local patch interaction); the order of GELU and normalisation is the release's.
class LocalPatchInteractionImpl : public torch::nn::Module {
 public:
  explicit LocalPatchInteractionImpl(std::int64_t dim, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns);

 private:
  Conv2d conv1_{nullptr}, conv2_{nullptr};
  BatchNorm2d bn_{nullptr};
};
using LocalPatchInteraction = Part<LocalPatchInteractionImpl>;

}  // namespace abl::models
