// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <string>

#include "models/layers/layers.h"

namespace abl::models {

/// What follows a normalisation.
enum class Activation { kNone, kRelu, kSilu };

torch::Tensor activate(const torch::Tensor& x, Activation activation);

/// By which outputs of a convolution its fan-out counts.
enum class FanOut {
  kAll,      ///< all of them: ResNet's release
  kOfGroup,  ///< those of one group: the releases of EfficientNet and RegNet
};

/// A convolution whose weights start normal with variance 2 / fan-out and whose bias starts at 0. Its padding
/// is that of `options` and half the kernel where that says 0.
Conv2d fan_out_conv(Conv2dOptions options, torch::Device device = torch::kCPU,
                    FanOut fan_out = FanOut::kOfGroup);

/// Batch normalisation with its activation: one part, as in timm, with the parameters of the normalisation.
/// Shape: x [B, channels, H, W] -> the same.
class BatchNormActImpl : public BatchNorm2dImpl {
 public:
  explicit BatchNormActImpl(std::int64_t channels, torch::Device device = torch::kCPU,
                            Activation activation = Activation::kRelu);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const Activation activation_;
};
using BatchNormAct = Part<BatchNormActImpl>;

/// A convolution without bias, batch normalisation, activation.
/// Parameters: `conv.weight`, `bn.*`.
/// Shape: x [B, in, H, W] -> [B, out, H', W'].
class ConvNormActImpl : public torch::nn::Module {
 public:
  explicit ConvNormActImpl(Conv2dOptions options, torch::Device device = torch::kCPU,
                           Activation activation = Activation::kRelu);
  torch::Tensor forward(const torch::Tensor& x);

  BatchNormAct norm() const { return norm_; }

 private:
  Conv2d conv_{nullptr};
  BatchNormAct norm_{nullptr};
};
using ConvNormAct = Part<ConvNormActImpl>;

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
