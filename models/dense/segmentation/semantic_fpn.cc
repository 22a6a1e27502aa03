// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/heads.h"

#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>

namespace abl::models {
namespace {

/// How often a map of the first stride is halved for one of `stride`.
std::int64_t doublings(std::int64_t first, std::int64_t stride) {
  const auto factor = static_cast<std::uint64_t>(first > 0 ? stride / first : 0);
  TORCH_CHECK_VALUE(first > 0 && stride % first == 0 && std::has_single_bit(factor), "maps with strides of ",
                    first, " and ", stride, " pixels; the first one doubled some times is expected");
  return std::countr_zero(factor);
}

}  // namespace

SemanticFpnHeadImpl::SemanticFpnHeadImpl(const SemanticFpnOptions& options,
                                         const std::vector<std::int64_t>& channels,
                                         const std::vector<std::int64_t>& strides, std::int64_t classes,
                                         torch::Device device)
    : SegmentationHeadImpl{options.channels, classes, options.dropout, device},
      align_corners_{options.align_corners} {
  TORCH_CHECK_VALUE(!channels.empty() && channels.size() == strides.size(), "channels of ", channels.size(),
                    " maps and strides of ", strides.size(), "; those of the same maps are expected");
  auto heads = register_module("scale_heads", torch::nn::ModuleList{});
  for (std::size_t level = 0; level < channels.size(); ++level) {
    const auto halvings = doublings(strides.front(), strides[level]);
    auto& [convs, enlarges] = scale_heads_.emplace_back();
    enlarges = halvings > 0;
    auto head = std::make_shared<torch::nn::Module>("scale_head");
    for (std::int64_t i = 0; i < std::max<std::int64_t>(1, halvings); ++i)
      convs.push_back(head->register_module(
          std::to_string(2 * i),
          conv_norm_relu(i == 0 ? channels[level] : options.channels, options.channels, 3, device)));
    heads->push_back(head);
  }
}

torch::Tensor SemanticFpnHeadImpl::forward(const Maps& maps) {
  auto sum = refine(scale_heads_.front(), maps.front());
  for (std::size_t level = 1; level < scale_heads_.size(); ++level)
    sum = sum + resize_like(refine(scale_heads_[level], maps.at(level)), sum, align_corners_);
  return classify(sum);
}

torch::Tensor SemanticFpnHeadImpl::refine(const ScaleHead& head, const torch::Tensor& map) const {
  auto x = map;
  for (const auto& conv : head.convs) {
    x = conv(x);
    if (head.enlarges) x = enlarge_map(x, 2, align_corners_);
  }
  return x;
}

}  // namespace abl::models
