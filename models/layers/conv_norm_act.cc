// SPDX-License-Identifier: Apache-2.0
#include "models/layers/conv_norm_act.h"

#include <torch/utils.h>

#include <cmath>

namespace abl::models {

torch::Tensor activate(const torch::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return torch::relu(x);
    case Activation::kSilu:
      return torch::silu(x);
  }
  TORCH_CHECK_VALUE(false, "no such activation");
}

Conv2d fan_out_conv(Conv2dOptions options, torch::Device device, FanOut fan_out) {
  if (options.padding == 0) options.padding = options.kernel / 2;
  Conv2d conv{options, device};
  if (!is_started(device)) return conv;
  const torch::NoGradGuard no_grad;
  const auto outputs =
      options.kernel * options.kernel * options.out / (fan_out == FanOut::kAll ? 1 : options.groups);
  conv->weight.normal_(0, std::sqrt(2.0 / static_cast<double>(outputs)));
  if (options.bias) conv->bias.zero_();
  return conv;
}

BatchNormActImpl::BatchNormActImpl(std::int64_t channels, torch::Device device, Activation activation)
    : BatchNorm2dImpl{channels, device}, activation_{activation} {}

torch::Tensor BatchNormActImpl::forward(const torch::Tensor& x) {
  return activate(BatchNorm2dImpl::forward(x), activation_);
}

ConvNormActImpl::ConvNormActImpl(Conv2dOptions options, torch::Device device, Activation activation) {
  options.bias = false;
  conv_ = register_module("conv", fan_out_conv(options, device));
  norm_ = register_module("bn", BatchNormAct{options.out, device, activation});
}

torch::Tensor ConvNormActImpl::forward(const torch::Tensor& x) { return norm_(conv_(x)); }

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
