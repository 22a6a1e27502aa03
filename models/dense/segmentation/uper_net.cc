// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/heads.h"

#include <torch/nn/modules/container/modulelist.h>

#include <memory>
#include <string>

namespace abl::models {

UperNetHeadImpl::UperNetHeadImpl(const UperNetOptions& options, const std::vector<std::int64_t>& channels,
                                 std::int64_t classes, torch::Device device)
    : SegmentationHeadImpl{options.channels, classes, options.dropout, device},
      pool_scales_{options.pool_scales},
      align_corners_{options.align_corners} {
  TORCH_CHECK_VALUE(!channels.empty(), "an UperNet over no maps; at least one is expected");
  const auto coarsest = channels.back(), width = options.channels;
  const auto levels = static_cast<std::int64_t>(channels.size());
  auto psp_modules = register_module("psp_modules", torch::nn::ModuleList{});
  for (const auto scale : pool_scales_) {
    TORCH_CHECK_VALUE(scale > 0, "a pooling pyramid with a grid of ", scale, "; at least 1 is expected");
    auto stage = std::make_shared<torch::nn::Module>("stage");  // pooling has the place "0"
    psp_modules_.push_back(stage->register_module("1", conv_norm_relu(coarsest, width, 1, device)));
    psp_modules->push_back(stage);
  }
  const auto beside = coarsest + static_cast<std::int64_t>(pool_scales_.size()) * width;
  bottleneck_ = register_module("bottleneck", conv_norm_relu(beside, width, 3, device));
  auto laterals = register_module("lateral_convs", torch::nn::ModuleList{});
  auto outputs = register_module("fpn_convs", torch::nn::ModuleList{});
  for (std::size_t level = 0; level + 1 < channels.size(); ++level) {  // the last is the pooled one
    laterals->push_back(lateral_convs_.emplace_back(conv_norm_relu(channels[level], width, 1, device)));
    outputs->push_back(fpn_convs_.emplace_back(conv_norm_relu(width, width, 3, device)));
  }
  fpn_bottleneck_ = register_module("fpn_bottleneck", conv_norm_relu(levels * width, width, 3, device));
}

torch::Tensor UperNetHeadImpl::forward(const Maps& maps) {
  Maps levels;
  for (std::size_t level = 0; level < lateral_convs_.size(); ++level)
    levels.push_back(lateral_convs_[level](maps.at(level)));
  levels.push_back(pool(maps.back()));
  for (auto level = levels.size() - 1; level > 0; --level)
    levels[level - 1] = levels[level - 1] + resize_like(levels[level], levels[level - 1], align_corners_);
  for (std::size_t level = 0; level < fpn_convs_.size(); ++level)
    levels[level] = fpn_convs_[level](levels[level]);
  for (auto& level : levels) level = resize_like(level, levels.front(), align_corners_);
  return classify(fpn_bottleneck_(torch::cat(levels, 1)));
}

torch::Tensor UperNetHeadImpl::pool(const torch::Tensor& map) const {
  Maps beside{map};
  for (std::size_t i = 0; i < psp_modules_.size(); ++i) {
    const auto side = pool_scales_[i];
    const auto means = psp_modules_[i](torch::adaptive_avg_pool2d(map, {side, side}));
    beside.push_back(resize_like(means, map, align_corners_));
  }
  return bottleneck_(torch::cat(beside, 1));
}

}  // namespace abl::models
