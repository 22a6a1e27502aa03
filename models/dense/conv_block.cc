// SPDX-License-Identifier: Apache-2.0
#include "models/dense/conv_block.h"

namespace abl::models {

ConvBlockImpl::ConvBlockImpl(const ConvBlockOptions& options, torch::Device device)
    : activation_{options.activation} {
  const bool is_normalised = options.norm == HeadNorm::kBatch;
  conv_ = register_module(
      "0",
      fan_out_conv({.in = options.in, .out = options.out, .kernel = options.kernel, .bias = !is_normalised},
                   device));
  if (is_normalised) norm_ = register_module("1", BatchNorm2d{options.out, device});
}

torch::Tensor ConvBlockImpl::forward(const torch::Tensor& x) {
  const auto y = conv_(x);
  return activate(norm_ ? norm_(y) : y, activation_);
}

}  // namespace abl::models
