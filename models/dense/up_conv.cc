// SPDX-License-Identifier: Apache-2.0
#include "models/dense/up_conv.h"

namespace abl::models {

UpConv2dImpl::UpConv2dImpl(std::int64_t in, std::int64_t out, torch::Device device) {
  TORCH_CHECK_VALUE(in > 0 && out > 0, "a transposed convolution from ", in, " to ", out,
                    " channels; both must be positive");
  weight = register_parameter("weight", new_weight({in, out, kFactor, kFactor}, device));
  bias = register_parameter("bias", new_uniform({out}, out * kFactor * kFactor, device));
}

torch::Tensor UpConv2dImpl::forward(const torch::Tensor& x) {
  return torch::conv_transpose2d(x, weight, bias, /*stride=*/{kFactor, kFactor});
}

}  // namespace abl::models
