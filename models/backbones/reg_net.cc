// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/reg_net.h"

#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace abl::models {
namespace {

std::int64_t nearest_multiple(double value, std::int64_t unit) {
  return static_cast<std::int64_t>(std::nearbyint(value / static_cast<double>(unit))) * unit;
}

void check_positive(const char* name, std::int64_t value) {
  TORCH_CHECK_VALUE(value > 0, name, " ", value, " of a RegNet; it must be positive");
}

void check(const RegNetRule& rule) {
  check_positive("depth", rule.depth);
  check_positive("group_width", rule.group_width);
  TORCH_CHECK_VALUE(rule.initial_width > 0 && rule.initial_width % 8 == 0, "initial_width ",
                    rule.initial_width, " of a RegNet; a positive multiple of 8 is expected");
  TORCH_CHECK_VALUE(rule.width_slope >= 0, "width_slope ", rule.width_slope,
                    " of a RegNet; it may not be negative");
  TORCH_CHECK_VALUE(rule.width_multiplier > 1, "width_multiplier ", rule.width_multiplier,
                    " of a RegNet; more than 1 is expected");
}

void check(const RegNetOptions& options) {
  check_positive("image_size", options.image_size);
  check_positive("classes", options.classes);
  check_positive("stem", options.stem);
  TORCH_CHECK_VALUE(!options.stages.empty(), "a RegNet without stages");
  for (const auto& stage : options.stages) {
    check_positive("depth of a stage", stage.depth);
    check_positive("group width of a stage", stage.group_width);
    TORCH_CHECK_VALUE(stage.width > 0 && stage.width % stage.group_width == 0, "width ", stage.width,
                      " of a stage of a RegNet; a multiple of its group width ", stage.group_width,
                      " is expected");
  }
  TORCH_CHECK_VALUE(options.se_ratio > 0 && options.se_ratio <= 1, "se_ratio ", options.se_ratio,
                    " of a RegNet; more than 0 and at most 1 is expected");
}

}  // namespace

std::vector<RegNetStageSize> stages_of(const RegNetRule& rule) {
  check(rule);
  std::vector<RegNetStageSize> stages;
  const auto first = static_cast<double>(rule.initial_width);
  for (std::int64_t block = 0; block < rule.depth; ++block) {
    const double wanted = first + rule.width_slope * static_cast<double>(block);
    const double step = std::nearbyint(std::log(wanted / first) / std::log(rule.width_multiplier));
    const auto width = nearest_multiple(first * std::pow(rule.width_multiplier, step), 8);
    if (stages.empty() || stages.back().width != width) stages.push_back({.width = width});
    ++stages.back().depth;
  }
  for (auto& stage : stages) {
    stage.group_width = std::min(rule.group_width, stage.width);
    stage.width = nearest_multiple(static_cast<double>(stage.width), stage.group_width);
  }
  return stages;
}

RegNetBlockImpl::RegNetBlockImpl(const RegNetBlockOptions& options, torch::Device device)
    : drop_rate_{options.drop_rate} {
  const auto& [in, width, stride, group_width, se_ratio, drop_rate] = options;
  conv1_ = register_module("conv1", ConvNormAct{Conv2dOptions{.in = in, .out = width}, device});
  conv2_ = register_module(
      "conv2",
      ConvNormAct{
          Conv2dOptions{
              .in = width, .out = width, .kernel = 3, .stride = stride, .groups = width / group_width},
          device});
  se_ = register_module(
      "se",
      SqueezeExcite{SqueezeExciteOptions{.channels = width, .reduced = squeezed(in, se_ratio)}, device});
  conv3_ = register_module("conv3",
                           ConvNormAct{Conv2dOptions{.in = width, .out = width}, device, Activation::kNone});
  if (stride != 1 || in != width)
    downsample_ = register_module(
        "downsample",
        ConvNormAct{Conv2dOptions{.in = in, .out = width, .stride = stride}, device, Activation::kNone});
  const torch::NoGradGuard no_grad;
  conv3_->norm()->weight.zero_();
}

torch::Tensor RegNetBlockImpl::forward(const torch::Tensor& x) {
  const auto y = drop_path(conv3_(se_(conv2_(conv1_(x)))), drop_rate_, is_training());
  return torch::relu(add_residual(downsample_ ? downsample_(x) : x, y));
}

RegNetStageImpl::RegNetStageImpl(std::span<const double> drop_rates, RegNetBlockOptions options,
                                 torch::Device device) {
  for (const auto drop_rate : drop_rates) {
    options.drop_rate = drop_rate;
    blocks_.push_back(
        register_module("b" + std::to_string(blocks_.size() + 1), RegNetBlock{options, device}));
    options.in = options.width;
    options.stride = 1;
  }
}

torch::Tensor RegNetStageImpl::forward(torch::Tensor x) {
  for (const auto& block : blocks_) x = tell_block(x, block(x), /*channels=*/1);
  return x;
}

PoolingHeadImpl::PoolingHeadImpl(std::int64_t dim, std::int64_t classes, torch::Device device, double dropout)
    : dropout_{dropout} {
  fc_ = register_module("fc", Linear{dim, classes, device});
  const torch::NoGradGuard no_grad;
  if (!is_started(device)) return;
  fc_->weight.normal_(0, 0.01);
  fc_->bias.zero_();
}

RegNetImpl::RegNetImpl(RegNetOptions options, torch::Device device) : options_{std::move(options)} {
  check(options_);
  const auto& stages = options_.stages;
  auto width = options_.stem;
  stem_ = register_module(
      "stem", ConvNormAct{Conv2dOptions{.in = 3, .out = width, .kernel = 3, .stride = 2}, device});
  std::int64_t blocks = 0;
  for (const auto& stage : stages) blocks += stage.depth;
  const auto rates = drop_rates(options_.drop_path, blocks);
  auto rest = std::span{rates};
  for (const auto& stage : stages) {
    const auto depth = static_cast<std::size_t>(stage.depth);
    const RegNetBlockOptions first{.in = width,
                                   .width = stage.width,
                                   .stride = 2,
                                   .group_width = stage.group_width,
                                   .se_ratio = options_.se_ratio};
    stages_.push_back(register_module("s" + std::to_string(stages_.size() + 1),
                                      RegNetStage{rest.first(depth), first, device}));
    rest = rest.subspan(depth);
    width = stage.width;
  }
  head_ = register_module("head", PoolingHead{width, options_.classes, device, options_.dropout.head});
}

torch::Tensor RegNetImpl::forward(const torch::Tensor& images) {
  auto x = stem_(images);
  for (const auto& stage : stages_) x = stage(x);
  return head_(x);
}

}  // namespace abl::models
