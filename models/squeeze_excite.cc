// SPDX-License-Identifier: Apache-2.0
#include "models/squeeze_excite.h"

#include <cmath>

namespace abl::models {

SqueezeExciteImpl::SqueezeExciteImpl(const SqueezeExciteOptions& options, torch::Device device)
    : activation_{options.activation} {
  TORCH_CHECK_VALUE(options.channels > 0 && options.reduced > 0, "squeeze and excitation of ",
                    options.channels, " channels by way of ", options.reduced, "; both must be positive");
  const auto map = [&](std::int64_t in, std::int64_t out) {
    return fan_out_conv(Conv2dOptions{.in = in, .out = out}, device);
  };
  reduce_ = register_module(options.reduce_name, map(options.channels, options.reduced));
  expand_ = register_module(options.expand_name, map(options.reduced, options.channels));
}

torch::Tensor SqueezeExciteImpl::forward(const torch::Tensor& x) {
  const auto means = x.mean({2, 3}, /*keepdim=*/true);  // [B, channels, 1, 1]
  return x * torch::sigmoid(expand_(activate(reduce_(means), activation_)));
}

std::int64_t squeezed(std::int64_t channels, double share) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(channels) * share));
}

}  // namespace abl::models
