// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <string>

#include "models/conv_norm_act.h"

namespace abl::models {

struct SqueezeExciteOptions {
  std::int64_t channels = 0;
  std::int64_t reduced = 0;                   ///< channels between the two maps
  Activation activation = Activation::kRelu;  ///< between the two maps
  std::string reduce_name = "fc1";            ///< of the first map: timm names it by the family
  std::string expand_name = "fc2";
};

/// Scales each channel by what the means of all channels say.
///   x · sigmoid(W2 activation(W1 mean(x) + b1) + b2)
/// Shape: x [B, channels, H, W] -> the same.
/// Source: "Squeeze-and-excitation networks", section 3.
class SqueezeExciteImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when nothing is left of the channels.
  explicit SqueezeExciteImpl(const SqueezeExciteOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const Activation activation_;
  Conv2d reduce_{nullptr}, expand_{nullptr};
};
using SqueezeExcite = Part<SqueezeExciteImpl>;

/// How many channels a squeeze of so many to a share leaves; a half is rounded to the even number, as the
/// releases do.
std::int64_t squeezed(std::int64_t channels, double share);

}  // namespace abl::models
