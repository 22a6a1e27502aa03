// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/heads.h"

#include <torch/nn/modules/container/modulelist.h>

namespace abl::models {
namespace {

constexpr double kEps = 1e-6;  // of every layer norm

/// Over the channels of every place.
torch::Tensor normalise(const LayerNorm& norm, const torch::Tensor& map) {
  return norm(map.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
}

SetrUpOptions up_options(const SetrOptions& options) {
  const bool is_naive = options.decoder == SetrDecoder::kNaive;
  return {.channels = options.channels,
          .convolutions = is_naive ? 1 : 4,
          .kernel = is_naive ? 1 : 3,
          .enlarge = is_naive ? 4 : 2,
          .dropout = options.dropout,
          .align_corners = options.align_corners};
}

}  // namespace

SetrUpHeadImpl::SetrUpHeadImpl(const SetrUpOptions& options, std::int64_t in, std::int64_t classes,
                               torch::Device device)
    : SegmentationHeadImpl{options.channels, classes, options.dropout, device}, options_{options} {
  TORCH_CHECK_VALUE(options_.convolutions > 0 && options_.enlarge > 0, "a SETR decoder of ",
                    options_.convolutions, " convolutions that enlarges by ", options_.enlarge,
                    "; at least 1 of each is expected");
  norm_ = register_module("norm", LayerNorm{in, device, kEps});
  auto up_convs = register_module("up_convs", torch::nn::ModuleList{});
  for (std::int64_t i = 0; i < options_.convolutions; ++i) {
    auto stage = torch::nn::ModuleList{};  // enlarging has the place "1"
    stage->push_back(up_convs_.emplace_back(
        conv_norm_relu(i == 0 ? in : options_.channels, options_.channels, options_.kernel, device)));
    up_convs->push_back(stage);
  }
}

torch::Tensor SetrUpHeadImpl::forward(const Maps& maps) {
  auto x = normalise(norm_, maps.at(options_.level));
  for (const auto& conv : up_convs_) x = enlarge_map(conv(x), options_.enlarge, options_.align_corners);
  return classify(x);
}

MlaNeckImpl::MlaNeckImpl(const std::vector<std::int64_t>& in, std::int64_t channels, torch::Device device) {
  auto norms = register_module("norm", torch::nn::ModuleList{});
  auto mla = register_module("mla", std::make_shared<torch::nn::Module>("mla"));
  auto channel_proj = mla->register_module("channel_proj", torch::nn::ModuleList{});
  auto feat_extract = mla->register_module("feat_extract", torch::nn::ModuleList{});
  for (const auto width : in) {
    norms->push_back(norms_.emplace_back(width, device, kEps));
    channel_proj->push_back(channel_proj_.emplace_back(conv_norm_relu(width, channels, 1, device)));
    feat_extract->push_back(feat_extract_.emplace_back(conv_norm_relu(channels, channels, 3, device)));
  }
}

Maps MlaNeckImpl::forward(const Maps& maps) {
  TORCH_CHECK_VALUE(maps.size() == norms_.size(), "an aggregation of ", norms_.size(), " maps was given ",
                    maps.size());
  Maps aggregated;
  torch::Tensor sum;
  for (auto level = maps.size(); level-- > 0;) {
    const auto own = channel_proj_[level](normalise(norms_[level], maps[level]));
    sum = sum.defined() ? sum + own : own;
    aggregated.push_back(feat_extract_[aggregated.size()](sum));
  }
  return aggregated;
}

SetrMlaHeadImpl::SetrMlaHeadImpl(const SetrOptions& options, std::size_t levels, std::int64_t classes,
                                 torch::Device device)
    : SegmentationHeadImpl{static_cast<std::int64_t>(levels) * options.mla_channels, classes, options.dropout,
                           device},
      align_corners_{options.align_corners} {
  auto up_convs = register_module("up_convs", torch::nn::ModuleList{});
  for (std::size_t level = 0; level < levels; ++level) {
    auto& [first, second] = up_convs_.emplace_back();
    auto stage = torch::nn::ModuleList{};
    stage->push_back(first = conv_norm_relu(options.channels, options.mla_channels, 3, device));
    stage->push_back(second = conv_norm_relu(options.mla_channels, options.mla_channels, 3, device));
    up_convs->push_back(stage);
  }
}

torch::Tensor SetrMlaHeadImpl::forward(const Maps& maps) {
  Maps beside;
  for (std::size_t level = 0; level < up_convs_.size(); ++level) {
    const auto& [first, second] = up_convs_[level];
    beside.push_back(enlarge_map(second(first(maps.at(level))), 4, align_corners_));
  }
  return classify(torch::cat(beside, 1));
}

SegmentationHead new_setr_head(const SetrOptions& options, const std::vector<std::int64_t>& channels,
                               std::int64_t classes, torch::Device device) {
  if (options.decoder == SetrDecoder::kMla)
    return new_head<SetrMlaHeadImpl>(options, channels.size(), classes, device);
  auto up = up_options(options);
  up.level = channels.size() - 1;
  return new_head<SetrUpHeadImpl>(up, channels.back(), classes, device);
}

std::vector<SegmentationHead> new_setr_auxiliary_heads(const SetrOptions& options,
                                                       const std::vector<std::int64_t>& channels,
                                                       std::int64_t classes, torch::Device device) {
  std::vector<SegmentationHead> heads;
  const bool is_mla = options.decoder == SetrDecoder::kMla;
  for (std::size_t level = 0; level < channels.size() - (is_mla ? 0 : 1); ++level) {
    if (is_mla) {
      const FcnHeadOptions fcn{
          .level = level, .channels = options.channels, .convolutions = 0, .dropout = options.dropout};
      heads.push_back(new_head<FcnHeadImpl>(fcn, options.channels, classes, device));
    } else {
      auto up = up_options(options);
      up.level = level, up.convolutions = 2, up.enlarge = 4;
      heads.push_back(new_head<SetrUpHeadImpl>(up, channels[level], classes, device));
    }
  }
  return heads;
}

}  // namespace abl::models
