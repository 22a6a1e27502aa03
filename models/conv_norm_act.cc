// SPDX-License-Identifier: Apache-2.0
#include "models/conv_norm_act.h"

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

}  // namespace abl::models
