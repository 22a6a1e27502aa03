// SPDX-License-Identifier: Apache-2.0
#include "models/local_patch_interaction.h"

namespace abl::models {

LocalPatchInteractionImpl::LocalPatchInteractionImpl(std::int64_t dim, torch::Device device) {
  const Conv2dOptions depth_wise{.in = dim, .out = dim, .kernel = 3, .padding = 1, .groups = dim};
  conv1_ = register_module("conv1", Conv2d{depth_wise, device});
  bn_ = register_module("bn", BatchNorm2d{dim, device});
  conv2_ = register_module("conv2", Conv2d{depth_wise, device});
}

torch::Tensor LocalPatchInteractionImpl::forward(const torch::Tensor& x, std::int64_t rows,
                                                 std::int64_t columns) {
  const auto B = x.size(0), D = x.size(2);
  const auto map = x.mT().reshape({B, D, rows, columns});
  return conv2_(bn_(torch::gelu(conv1_(map)))).flatten(2).mT();  // [B, N, D]
}

}  // namespace abl::models
