// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/resnet.h"

#include <torch/utils.h>

#include <numeric>
#include <string>

#include "models/layers/conv_norm_act.h"

namespace abl::models {
namespace {

constexpr std::int64_t kStem = 64, kExpansion = 4;  // of a bottleneck
constexpr std::size_t kStages = 4;

/// Channels of a stage's 3 x 3 convolutions.
std::int64_t inner_width(const ResNetOptions& options, std::int64_t width) {
  return width * options.width_per_group / 64 * options.groups;
}

void check(const ResNetOptions& options) {
  TORCH_CHECK_VALUE(options.image_size > 0, "image_size ", options.image_size,
                    " of a ResNet; it must be positive");
  TORCH_CHECK_VALUE(options.classes > 0, "classes ", options.classes, " of a ResNet; it must be positive");
  TORCH_CHECK_VALUE(options.layers.size() == kStages && options.widths.size() == kStages, "layers of ",
                    options.layers.size(), " stages and widths of ", options.widths.size(),
                    " of a ResNet; 4 of each are expected");
  for (const auto depth : options.layers)
    TORCH_CHECK_VALUE(depth > 0, "a stage of ", depth, " layers of a ResNet; at least 1 is expected");
  TORCH_CHECK_VALUE(options.groups > 0, "groups ", options.groups, " of a ResNet; it must be positive");
  TORCH_CHECK_VALUE(options.has_bottlenecks || (options.groups == 1 && options.width_per_group == 64),
                    "basic blocks of a ResNet with groups ", options.groups, " and width_per_group ",
                    options.width_per_group, "; 1 and 64 are expected");
  for (const auto width : options.widths)
    TORCH_CHECK_VALUE(width > 0 && inner_width(options, width) > 0, "a stage of width ", width,
                      " of a ResNet with width_per_group ", options.width_per_group,
                      "; at least one channel for each group is expected");
}

Conv2d resnet_conv(Conv2dOptions options, torch::Device device) {
  options.bias = false;
  return fan_out_conv(options, device, FanOut::kAll);
}

BatchNorm2d resnet_norm(std::int64_t channels, torch::Device device, bool is_frozen) {
  return BatchNorm2d{channels, device, /*eps=*/1e-5, /*momentum=*/0.1, is_frozen};
}

/// norm(conv(x)). Where the normalisation is frozen the convolution scales and shifts: nothing is computed or
/// kept between the two. An observer sees both.
torch::Tensor convolved(const Conv2d& conv, const BatchNorm2d& norm, const torch::Tensor& x) {
  if (!norm->is_frozen() || Observation::current()) return norm(conv(x));
  const auto [scale, shift] = norm->scale_and_shift();
  return conv->convolve(x, conv->weight * scale.view({-1, 1, 1, 1}), shift);
}

/// In place where nobody keeps x: a convolution needs its input alone for its gradient.
torch::Tensor rectified(torch::Tensor x) { return Observation::current() ? torch::relu(x) : torch::relu_(x); }

}  // namespace

ResNetShortcutImpl::ResNetShortcutImpl(std::int64_t in, std::int64_t out, std::int64_t stride,
                                       torch::Device device, bool frozen_norms) {
  conv_ = register_module("0", resnet_conv({.in = in, .out = out, .stride = stride}, device));
  norm_ = register_module("1", resnet_norm(out, device, frozen_norms));
}

torch::Tensor ResNetShortcutImpl::forward(const torch::Tensor& x) { return convolved(conv_, norm_, x); }

ResNetBlockImpl::ResNetBlockImpl(const ResNetBlockOptions& options, torch::Device device)
    : drop_rate_{options.drop_rate} {
  const auto& [in, width, out, stride, groups, bottleneck, zero_init_last, drop_rate, frozen_norms] = options;
  const auto norm = [&](std::int64_t channels) {
    return resnet_norm(channels, device, options.frozen_norms);
  };
  const Conv2dOptions narrow{.in = in, .out = width},
      wide{.in = in, .out = width, .kernel = 3, .stride = stride};
  conv1_ = register_module("conv1", resnet_conv(bottleneck ? narrow : wide, device));
  bn1_ = register_module("bn1", norm(width));
  conv2_ = register_module(
      "conv2",
      resnet_conv(
          {.in = width, .out = width, .kernel = 3, .stride = bottleneck ? stride : 1, .groups = groups},
          device));
  bn2_ = register_module("bn2", norm(width));
  if (bottleneck) {
    conv3_ = register_module("conv3", resnet_conv({.in = width, .out = out}, device));
    bn3_ = register_module("bn3", norm(out));
  }
  if (stride != 1 || in != out)
    downsample_ = register_module("downsample", ResNetShortcut{in, out, stride, device, frozen_norms});
  if (zero_init_last && !frozen_norms) {
    const torch::NoGradGuard no_grad;
    (bottleneck ? bn3_ : bn2_)->weight.zero_();
  }
}

torch::Tensor ResNetBlockImpl::forward(const torch::Tensor& x) {
  auto y = convolved(conv2_, bn2_, rectified(convolved(conv1_, bn1_, x)));
  if (conv3_) y = convolved(conv3_, bn3_, rectified(y));
  y = drop_path(y, drop_rate_, is_training());
  return rectified(add_residual(downsample_ ? downsample_(x) : x, y));
}

ResNetStageImpl::ResNetStageImpl(std::span<const double> drop_rates, ResNetBlockOptions options,
                                 torch::Device device) {
  for (const auto drop_rate : drop_rates) {
    options.drop_rate = drop_rate;
    blocks_.push_back(register_module(std::to_string(blocks_.size()), ResNetBlock{options, device}));
    options.in = options.out;
    options.stride = 1;
  }
}

torch::Tensor ResNetStageImpl::forward(torch::Tensor x) {
  for (const auto& block : blocks_) x = tell_block(x, block(x), /*channels=*/1);
  return x;
}

ResNetImpl::ResNetImpl(ResNetOptions options, torch::Device device) : options_{std::move(options)} {
  check(options_);
  conv1_ = register_module("conv1", resnet_conv({.in = 3, .out = kStem, .kernel = 7, .stride = 2}, device));
  bn1_ = register_module("bn1", resnet_norm(kStem, device, options_.frozen_norms));
  maxpool_ = register_module("maxpool", MaxPool{std::make_shared<MaxPoolImpl>()});
  ResNetBlockOptions block{.in = kStem,
                           .groups = options_.groups,
                           .bottleneck = options_.has_bottlenecks,
                           .zero_init_last = options_.zero_init_last,
                           .frozen_norms = options_.frozen_norms};
  const auto rates = drop_rates(
      options_.drop_path, std::accumulate(options_.layers.begin(), options_.layers.end(), std::int64_t{0}));
  auto rest = std::span{rates};
  for (std::size_t stage = 0; stage < options_.layers.size(); ++stage) {
    const auto depth = static_cast<std::size_t>(options_.layers[stage]);
    block.width = inner_width(options_, options_.widths[stage]);
    block.out = (options_.has_bottlenecks ? kExpansion : 1) * options_.widths[stage];
    stages_.push_back(
        register_module("layer" + std::to_string(stage + 1), ResNetStage{rest.first(depth), block, device}));
    rest = rest.subspan(depth);
    block.in = block.out;
    block.stride = 2;  // the first stage has none: the pooling before it
  }
  if (options_.has_head) fc_ = register_module("fc", Linear{block.in, options_.classes, device});
}

torch::Tensor ResNetImpl::stem(const torch::Tensor& images) const {
  return maxpool_(rectified(convolved(conv1_, bn1_, images)));
}

std::vector<torch::Tensor> ResNetImpl::maps(const torch::Tensor& images) {
  std::vector<torch::Tensor> maps;
  auto x = stem(images);
  for (const auto& stage : stages_) maps.push_back(x = stage(x));
  return maps;
}

std::vector<std::int64_t> ResNetImpl::channels() const {
  std::vector<std::int64_t> channels;
  for (const auto width : options_.widths)
    channels.push_back((options_.has_bottlenecks ? kExpansion : 1) * width);
  return channels;
}

torch::Tensor ResNetImpl::forward(const torch::Tensor& images) {
  TORCH_CHECK_VALUE(fc_, "this ResNet has no head: it computes feature maps, not logits");
  auto x = stem(images);
  for (const auto& stage : stages_) x = stage(x);
  return fc_(drop_out(x.mean({2, 3}), options_.dropout.head, is_training()));
}

}  // namespace abl::models
