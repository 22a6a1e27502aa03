// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <span>
#include <vector>

#include "models/backbones/classifier.h"
#include "models/layers/conv_norm_act.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"

namespace abl::models {

/// Blocks in a row; the first has the stride.
struct EfficientNetStageOptions {
  std::int64_t depth = 1, width = 0, kernel = 3, stride = 1;
  std::int64_t expansion = 6;  ///< inside a block, of its input's width; 1: no expansion
};

/// By default EfficientNet-B0.
struct EfficientNetOptions {
  using Model = class EfficientNetImpl;
  static constexpr bool kHasBlocks = false;
  std::int64_t image_size = 224;  ///< square, pixels; the model takes other sizes as well
  std::int64_t classes = 1000;
  std::int64_t stem = 32;    ///< channels of the first convolution
  std::int64_t head = 1280;  ///< channels of the last
  std::vector<EfficientNetStageOptions> stages = {
      {.depth = 1, .width = 16, .kernel = 3, .stride = 1, .expansion = 1},
      {.depth = 2, .width = 24, .kernel = 3, .stride = 2, .expansion = 6},
      {.depth = 2, .width = 40, .kernel = 5, .stride = 2, .expansion = 6},
      {.depth = 3, .width = 80, .kernel = 3, .stride = 2, .expansion = 6},
      {.depth = 3, .width = 112, .kernel = 5, .stride = 1, .expansion = 6},
      {.depth = 4, .width = 192, .kernel = 5, .stride = 2, .expansion = 6},
      {.depth = 1, .width = 320, .kernel = 3, .stride = 1, .expansion = 6},
  };
  /// Of blocks that add their input. The linear rule stops one step short of the rate, as in timm.
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
};

/// Compound scaling. Channels are rounded to multiples of 8, never down by more than a tenth; the blocks of a
/// stage are rounded up. B1 is 1.0 and 1.1, B2 1.1 and 1.2, B7 2.0 and 3.1.
/// Source: Tan and Le (ICML 2019), section 3.3, and their release.
EfficientNetOptions scaled(EfficientNetOptions options, double width, double depth);

/// The mobile bottleneck: a 1 x 1 convolution widens, a depthwise one mixes pixels, squeeze and excitation
/// (to a quarter of the block's input) scales channels, a 1 x 1 convolution narrows; x is added where the
/// shape stays.
/// Parameters: `conv_pw`, `bn1`, `conv_dw`, `bn2`, `se.conv_reduce`, `se.conv_expand`, `conv_pwl`, `bn3`;
///             without expansion `conv_dw`, `bn1`, `se`, `conv_pw`, `bn2`, as in timm.
/// Shape: x [B, in, H, W] -> [B, width, ⌈H/stride⌉, ⌈W/stride⌉].
/// Source: "MobileNetV2", section 3.3; squeeze and excitation: "MnasNet", Figure 7.
class MobileBottleneckImpl : public torch::nn::Module {
 public:
  MobileBottleneckImpl(std::int64_t in, const EfficientNetStageOptions& options,
                       torch::Device device = torch::kCPU, double drop_rate = 0);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const bool has_residual_;
  const double drop_rate_;
  Conv2d expand_{nullptr};  ///< with its norm, null where there is no expansion
  BatchNormAct expand_norm_{nullptr};
  Conv2d depthwise_{nullptr}, project_{nullptr};
  BatchNormAct depthwise_norm_{nullptr}, project_norm_{nullptr};
  SqueezeExcite se_{nullptr};
};
using MobileBottleneck = Part<MobileBottleneckImpl>;

/// Children "0", "1", …
/// Shape: x [B, in, H, W] -> [B, width, ⌈H/stride⌉, ⌈W/stride⌉].
class EfficientNetStageImpl : public torch::nn::Module {
 public:
  /// `drop_rates`: of each block.
  EfficientNetStageImpl(std::int64_t in, EfficientNetStageOptions options, std::span<const double> drop_rates,
                        torch::Device device = torch::kCPU);
  torch::Tensor forward(torch::Tensor x);

 private:
  std::vector<MobileBottleneck> blocks_;
};
using EfficientNetStage = Part<EfficientNetStageImpl>;

/// EfficientNet. Parameters are named as in timm: `conv_stem`, `bn1`, `blocks.i.j`, `conv_head`, `bn2`,
/// `classifier`.
/// Convolutions start normal with variance 2 / fan-out, groups divided out; the classifier uniform in
/// ±1/√classes; all biases at 0: as the release in TensorFlow, and timm. No dropout.
/// Shape: images [B, 3, H, W], of any size -> [B, classes].
/// Source: "EfficientNet", Table 1; the comparator of MSF Table 6.
class EfficientNetImpl : public Classifier {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit EfficientNetImpl(EfficientNetOptions options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images) override;

  const EfficientNetOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<EfficientNetImpl>(options_, device);
  }

 private:
  const EfficientNetOptions options_;
  Conv2d conv_stem_{nullptr}, conv_head_{nullptr};
  BatchNormAct bn1_{nullptr}, bn2_{nullptr};
  std::vector<EfficientNetStage> stages_;
  Linear classifier_{nullptr};
};
using EfficientNet = Part<EfficientNetImpl>;

}  // namespace abl::models
