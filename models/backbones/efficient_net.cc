// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/efficient_net.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace abl::models {
namespace {

constexpr double kSqueeze = 0.25;

void check(const EfficientNetOptions& options) {
  const auto positive = [](const char* name, std::int64_t value) {
    TORCH_CHECK_VALUE(value > 0, name, " ", value, " of an EfficientNet; it must be positive");
  };
  positive("image_size", options.image_size);
  positive("classes", options.classes);
  positive("stem", options.stem);
  positive("head", options.head);
  TORCH_CHECK_VALUE(!options.stages.empty(), "no stages of an EfficientNet; at least 1 is expected");
  for (const auto& stage : options.stages) {
    positive("depth of a stage", stage.depth);
    positive("width of a stage", stage.width);
    positive("expansion of a stage", stage.expansion);
    TORCH_CHECK_VALUE(stage.kernel > 0 && stage.kernel % 2 == 1, "kernel ", stage.kernel,
                      " of a stage of an EfficientNet; an odd size is expected");
    TORCH_CHECK_VALUE(stage.stride == 1 || stage.stride == 2, "stride ", stage.stride,
                      " of a stage of an EfficientNet; 1 or 2 is expected");
  }
}

Conv2d efficient_conv(Conv2dOptions options, torch::Device device) {
  options.bias = false;
  return fan_out_conv(options, device);
}

std::int64_t scaled_channels(std::int64_t channels, double factor) {
  const double wanted = static_cast<double>(channels) * factor;
  const auto rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

}  // namespace

EfficientNetOptions scaled(EfficientNetOptions options, double width, double depth) {
  options.stem = scaled_channels(options.stem, width);
  options.head = scaled_channels(options.head, width);
  for (auto& stage : options.stages) {
    stage.width = scaled_channels(stage.width, width);
    stage.depth = static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.depth) * depth));
  }
  return options;
}

MobileBottleneckImpl::MobileBottleneckImpl(std::int64_t in, const EfficientNetStageOptions& options,
                                           torch::Device device, double drop_rate)
    : has_residual_{options.stride == 1 && in == options.width}, drop_rate_{drop_rate} {
  const auto inner = in * options.expansion;
  const bool expands = options.expansion != 1;
  if (expands) {
    expand_ = register_module("conv_pw", efficient_conv({.in = in, .out = inner}, device));
    expand_norm_ = register_module("bn1", BatchNormAct{inner, device, Activation::kSilu});
  }
  depthwise_ = register_module(
      "conv_dw",
      efficient_conv(
          {.in = inner, .out = inner, .kernel = options.kernel, .stride = options.stride, .groups = inner},
          device));
  depthwise_norm_ = register_module(expands ? "bn2" : "bn1", BatchNormAct{inner, device, Activation::kSilu});
  se_ = register_module("se", SqueezeExcite{SqueezeExciteOptions{.channels = inner,
                                                                 .reduced = squeezed(in, kSqueeze),
                                                                 .activation = Activation::kSilu,
                                                                 .reduce_name = "conv_reduce",
                                                                 .expand_name = "conv_expand"},
                                            device});
  project_ = register_module(expands ? "conv_pwl" : "conv_pw",
                             efficient_conv({.in = inner, .out = options.width}, device));
  project_norm_ =
      register_module(expands ? "bn3" : "bn2", BatchNormAct{options.width, device, Activation::kNone});
}

torch::Tensor MobileBottleneckImpl::forward(const torch::Tensor& x) {
  auto y = expand_ ? expand_norm_(expand_(x)) : x;
  y = se_(depthwise_norm_(depthwise_(y)));
  y = project_norm_(project_(y));
  return has_residual_ ? add_residual(x, drop_path(y, drop_rate_, is_training())) : y;
}

EfficientNetStageImpl::EfficientNetStageImpl(std::int64_t in, EfficientNetStageOptions options,
                                             std::span<const double> drop_rates, torch::Device device) {
  for (const auto drop_rate : drop_rates) {
    blocks_.push_back(
        register_module(std::to_string(blocks_.size()), MobileBottleneck{in, options, device, drop_rate}));
    in = options.width;
    options.stride = 1;
  }
}

torch::Tensor EfficientNetStageImpl::forward(torch::Tensor x) {
  for (const auto& block : blocks_) x = tell_block(x, block(x), /*channels=*/1);
  return x;
}

EfficientNetImpl::EfficientNetImpl(EfficientNetOptions options, torch::Device device)
    : options_{std::move(options)} {
  check(options_);
  auto width = options_.stem;
  conv_stem_ =
      register_module("conv_stem", efficient_conv({.in = 3, .out = width, .kernel = 3, .stride = 2}, device));
  bn1_ = register_module("bn1", BatchNormAct{width, device, Activation::kSilu});
  auto blocks = register_module("blocks", torch::nn::ModuleList{});
  std::int64_t block = 0;
  for (const auto& stage : options_.stages) block += stage.depth;
  const auto rates = drop_rates(options_.drop_path, block + 1);  // the last is nobody's
  auto rest = std::span{rates};
  for (const auto& stage : options_.stages) {
    const auto depth = static_cast<std::size_t>(stage.depth);
    stages_.emplace_back(width, stage, rest.first(depth), device);
    rest = rest.subspan(depth);
    blocks->push_back(stages_.back().ptr());
    width = stage.width;
  }
  conv_head_ = register_module("conv_head", efficient_conv({.in = width, .out = options_.head}, device));
  bn2_ = register_module("bn2", BatchNormAct{options_.head, device, Activation::kSilu});
  classifier_ = register_module("classifier", Linear{options_.head, options_.classes, device});
  if (!is_started(device)) return;
  const torch::NoGradGuard no_grad;
  const double bound = 1 / std::sqrt(static_cast<double>(options_.classes));
  classifier_->weight.uniform_(-bound, bound);
  classifier_->bias.zero_();
}

torch::Tensor EfficientNetImpl::forward(const torch::Tensor& images) {
  auto x = bn1_(conv_stem_(images));
  for (const auto& stage : stages_) x = stage(x);
  return classifier_(drop_out(bn2_(conv_head_(x)).mean({2, 3}), options_.dropout.head, is_training()));
}

}  // namespace abl::models
