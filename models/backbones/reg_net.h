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

struct RegNetStageSize {
  std::int64_t depth = 0, width = 0, group_width = 0;  ///< channels, and those of one group of the 3 x 3
  bool operator==(const RegNetStageSize&) const = default;
};

/// Four numbers that stand for all sizes, by default RegNetY-16GF's.
struct RegNetRule {
  std::int64_t depth = 18;           ///< blocks of all stages
  std::int64_t initial_width = 200;  ///< w_0, a multiple of 8
  double width_slope = 106.23;       ///< w_a: channels that each block adds, before quantisation
  double width_multiplier = 2.48;    ///< w_m: from stage to stage, above 1
  std::int64_t group_width = 112;    ///< channels of one group of the 3 x 3 convolutions
};

/// The stages that the published rule derives.
///   u_j = w_0 + w_a j,  s_j = round(log(u_j / w_0) / log w_m),  w_j = w_0 w_m^s_j to the nearest 8
/// Blocks of one width are a stage, whose width is then rounded to a multiple of its group width.
/// Source: "Designing network design spaces", section 3.3, equations 2 to 4.
/// Throws: c10::ValueError when the numbers do not fit together.
std::vector<RegNetStageSize> stages_of(const RegNetRule& rule);

/// By default RegNetY-16GF.
struct RegNetOptions {
  using Model = class RegNetImpl;
  static constexpr bool kHasBlocks = false;
  std::int64_t image_size = 224;  ///< square, pixels; the model takes other sizes as well
  std::int64_t classes = 1000;
  std::int64_t stem = 32;  ///< channels of the first convolution
  std::vector<RegNetStageSize> stages = stages_of(RegNetRule{});
  double se_ratio = 0.25;  ///< of a block's input, what squeeze and excitation leaves
  DropPathOptions drop_path{};
  DropoutOptions dropout{};
};

struct RegNetBlockOptions {
  std::int64_t in = 0, width = 0, stride = 1, group_width = 0;
  double se_ratio = 0.25;
  double drop_rate = 0;
};

/// The Y block: a bottleneck that does not narrow, with squeeze and excitation after its 3 x 3 convolution.
///   relu(shortcut(x) + conv3 SE conv2 conv1 x)
/// Parameters: `conv1.conv`, `conv1.bn`, `conv2`, `se.fc1`, `se.fc2`, `conv3`, and `downsample` where the
///             shape changes.
/// Shape: x [B, in, H, W] -> [B, width, ⌈H/stride⌉, ⌈W/stride⌉].
/// Source: "Designing network design spaces", section 4 (the Y block).
class RegNetBlockImpl : public torch::nn::Module {
 public:
  explicit RegNetBlockImpl(const RegNetBlockOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const double drop_rate_;
  ConvNormAct conv1_{nullptr}, conv2_{nullptr}, conv3_{nullptr};
  SqueezeExcite se_{nullptr};
  ConvNormAct downsample_{nullptr};  ///< null where the shape stays
};
using RegNetBlock = Part<RegNetBlockImpl>;

/// Blocks `b1`, `b2`, …; the first halves the image.
/// Shape: x [B, in, H, W] -> [B, width, ⌈H/2⌉, ⌈W/2⌉].
class RegNetStageImpl : public torch::nn::Module {
 public:
  /// `drop_rates`: of each block.
  RegNetStageImpl(std::span<const double> drop_rates, RegNetBlockOptions first,
                  torch::Device device = torch::kCPU);
  torch::Tensor forward(torch::Tensor x);

 private:
  std::vector<RegNetBlock> blocks_;
};
using RegNetStage = Part<RegNetStageImpl>;

/// The mean over the image, then the classifier `fc`, with dropout before it.
/// Shape: x [B, dim, H, W] -> [B, classes].
class PoolingHeadImpl : public torch::nn::Module {
 public:
  PoolingHeadImpl(std::int64_t dim, std::int64_t classes, torch::Device device = torch::kCPU,
                  double dropout = 0);
  torch::Tensor forward(const torch::Tensor& x) {
    return fc_(drop_out(x.mean({2, 3}), dropout_, is_training()));
  }

 private:
  const double dropout_;
  Linear fc_{nullptr};
};
using PoolingHead = Part<PoolingHeadImpl>;

/// RegNetY. Parameters are named as in timm: `stem`, `s1.b1`, … `head.fc`.
/// Convolutions start normal with variance 2 / fan-out, groups divided out; the classifier with deviation
/// 0.01; biases and the last normalisation of each block at 0: as in timm.
/// Shape: images [B, 3, H, W], of any size -> [B, classes].
/// Source: "Designing network design spaces", section 5; DeiT's teacher.
class RegNetImpl : public Classifier {
 public:
  /// Throws: c10::ValueError when the options do not fit together.
  explicit RegNetImpl(RegNetOptions options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& images) override;

  const RegNetOptions& options() const { return options_; }

 protected:
  std::shared_ptr<Classifier> another(torch::Device device) const override {
    return std::make_shared<RegNetImpl>(options_, device);
  }

 private:
  const RegNetOptions options_;
  ConvNormAct stem_{nullptr};
  std::vector<RegNetStage> stages_;
  PoolingHead head_{nullptr};
};
using RegNet = Part<RegNetImpl>;

}  // namespace abl::models
