// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/layers/conv_norm_act.h"
#include "models/layers/layers.h"

namespace abl::models {

/// What stands between a convolution of a head and its activation.
enum class HeadNorm { kNone, kBatch };

struct ConvBlockOptions {
  std::int64_t in = 0, out = 0, kernel = 3;
  HeadNorm norm = HeadNorm::kNone;
  Activation activation = Activation::kRelu;
};

/// A convolution that keeps the size, normalisation where it is asked for (the convolution then has no bias),
/// activation. Children "0" and "1", as in torchvision; the convolution starts as `fan_out_conv`.
/// Shape: x [B, in, H, W] -> [B, out, H, W].
class ConvBlockImpl : public torch::nn::Module {
 public:
  explicit ConvBlockImpl(const ConvBlockOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

  Conv2d conv() const { return conv_; }

 private:
  const Activation activation_;
  Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};  ///< null where there is none
};
using ConvBlock = Part<ConvBlockImpl>;

}  // namespace abl::models
