// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <memory>
#include <span>
#include <vector>

#include "models/backbones/classifier.h"
#include "models/backbones/feature_maps.h"
#include "models/layers/drop_path.h"
#include "models/layers/dropout.h"
#include "models/layers/layers.h"

namespace abl::models {

/// By default ResNet-50. ResNeXt-50 32x4d: 32 groups of width 4; wide ResNet-50-2: one of width 128.
struct ResNetOptions {
  using Model = class ResNetImpl;
  static constexpr bool kHasBlocks = false;
  std::int64_t image_size = 224;  ///< square, pixels; the model takes other sizes as well
  std::int64_t classes = 1000;
  std::vector<std::int64_t> layers = {3, 4, 6, 3};  ///< blocks of each stage
  std::vector<std::int64_t> widths = {64, 128, 256,
                                      512};  ///< of each stage; of bottlenecks the output is 4 times as wide
  bool has_bottlenecks = true;  ///< false: basic blocks, as ResNet-18 and 34; they have one group of width 64
  std::int64_t groups = 1;      ///< of the 3 x 3 convolutions: ResNeXt's cardinality
  std::int64_t width_per_group = 64;  ///< where the stage's width is 64; proportional in the others
  bool zero_init_last = true;         ///< the last normalisation of each block starts at 0
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
  bool has_head = true;       ///< false: it gives maps and no logits, and has no `fc`
  bool frozen_norms = false;  ///< normalisations are a scale and a shift, as detectors are fine-tuned
};

/// The projection of a block's input where its shape changes: a 1 x 1 convolution and batch normalisation.
/// Children "0" and "1".
/// Shape: x [B, in, H, W] -> [B, out, ⌈H/stride⌉, ⌈W/stride⌉].
class ResNetShortcutImpl : public torch::nn::Module {
 public:
  ResNetShortcutImpl(std::int64_t in, std::int64_t out, std::int64_t stride,
                     torch::Device device = torch::kCPU, bool frozen_norms = false);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Conv2d conv_{nullptr};
  BatchNorm2d norm_{nullptr};
};
using ResNetShortcut = Part<ResNetShortcutImpl>;

struct ResNetBlockOptions {
  std::int64_t in = 0, width = 0, out = 0;  ///< `width`: of the 3 x 3 convolution
  std::int64_t stride = 1, groups = 1;
  bool bottleneck = true;
  bool zero_init_last = true;
  double drop_rate = 0;
  bool frozen_norms = false;
};

/// The bottleneck: 1 x 1, 3 x 3 and 1 x 1 convolutions, each with batch normalisation; the 3 x 3 has the
/// stride and the groups.
///   relu(shortcut(x) + BN3 conv3 relu BN2 conv2 relu BN1 conv1 x)
/// The basic block: two 3 x 3 convolutions, the first with the stride.
///   relu(shortcut(x) + BN2 conv2 relu BN1 conv1 x)
/// Parameters: `conv1`, `bn1`, … `bn3`, and `downsample.0`, `downsample.1` where the shape changes.
/// Shape: x [B, in, H, W] -> [B, out, ⌈H/stride⌉, ⌈W/stride⌉].
/// Source: "Deep residual learning for image recognition", Figure 5; groups: "Aggregated residual
/// transformations for deep neural networks", Figure 3c. A bottleneck's stride stands in the 3 x 3
/// convolution, as in timm.
class ResNetBlockImpl : public torch::nn::Module {
 public:
  explicit ResNetBlockImpl(const ResNetBlockOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const double drop_rate_;
  Conv2d conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};  ///< a basic block has no third
  BatchNorm2d bn1_{nullptr}, bn2_{nullptr}, bn3_{nullptr};
  ResNetShortcut downsample_{nullptr};  ///< null where the shape stays
};
using ResNetBlock = Part<ResNetBlockImpl>;

/// Blocks in a row, children "0", "1", …; the first changes the shape.
/// Shape: x [B, in, H, W] -> [B, out, ⌈H/stride⌉, ⌈W/stride⌉].
class ResNetStageImpl : public torch::nn::Module {
 public:
  /// `drop_rates`: of each block.
  ResNetStageImpl(std::span<const double> drop_rates, ResNetBlockOptions first,
                  torch::Device device = torch::kCPU);
  torch::Tensor forward(torch::Tensor x);

 private:
  std::vector<ResNetBlock> blocks_;
};
using ResNetStage = Part<ResNetStageImpl>;

/// The maximum of 3 x 3 pixels at every second.
/// Shape: x [B, C, H, W] -> [B, C, ⌈H/2⌉, ⌈W/2⌉].
class MaxPoolImpl : public torch::nn::Module {
 public:
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  }
};
using MaxPool = Part<MaxPoolImpl>;

/// ResNet and ResNeXt. Parameters are named as in timm: `conv1`, `bn1`, `layer1`, …
/// `fc`. Convolutions start normal with variance 2 / fan-out, groups not divided out, as in timm.
/// Its maps are those of the four stages, of strides 4, 8, 16 and 32.
/// Shape: images [B, 3, H, W], of any size -> [B, classes].
/// Source: as the block's; the comparators of MSF Table 6.
class ResNetImpl : public Classifier, public FeatureMaps {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit ResNetImpl(ResNetOptions options, torch::Device device = torch::kCPU);
  /// Throws: c10::ValueError without a head.
  torch::Tensor forward(const torch::Tensor& images) override;

  std::vector<torch::Tensor> maps(const torch::Tensor& images) override;
  std::vector<std::int64_t> channels() const override;
  std::vector<std::int64_t> strides() const override { return {4, 8, 16, 32}; }

  const ResNetOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<ResNetImpl>(options_, device);
  }

 private:
  torch::Tensor stem(const torch::Tensor& images) const;

  const ResNetOptions options_;
  Conv2d conv1_{nullptr};
  BatchNorm2d bn1_{nullptr};
  MaxPool maxpool_{nullptr};
  std::vector<ResNetStage> stages_;
  Linear fc_{nullptr};  ///< null without a head
};
using ResNet = Part<ResNetImpl>;

}  // namespace abl::models
