// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/heads.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

namespace abl::models {

SegmentationHeadImpl::SegmentationHeadImpl(std::int64_t channels, std::int64_t classes, double dropout,
                                           torch::Device device)
    : dropout_{dropout} {
  TORCH_CHECK_VALUE(channels > 0 && classes > 0, "a head of ", channels, " channels and ", classes,
                    " classes; both must be positive");
  TORCH_CHECK_VALUE(dropout >= 0 && dropout < 1, "dropout is ", dropout,
                    "; at least 0 and less than 1 is expected");
  conv_seg_ = register_module("conv_seg", Conv2d{Conv2dOptions{.in = channels, .out = classes}, device});
  if (!is_started(device)) return;
  const torch::NoGradGuard no_grad;
  conv_seg_->weight.normal_(0, 0.01);
  conv_seg_->bias.zero_();
}

torch::Tensor SegmentationHeadImpl::classify(const torch::Tensor& x) {
  const bool drops = dropout_ > 0 && is_training();
  return conv_seg_(drops ? torch::feature_dropout(x, dropout_, /*train=*/true) : x);
}

ConvNormAct conv_norm_relu(std::int64_t in, std::int64_t out, std::int64_t kernel, torch::Device device) {
  return ConvNormAct{Conv2dOptions{.in = in, .out = out, .kernel = kernel}, device};
}

torch::Tensor resize_map(const torch::Tensor& x, std::int64_t rows, std::int64_t columns,
                         bool align_corners) {
  if (x.size(2) == rows && x.size(3) == columns) return x;
  return at::upsample_bilinear2d(x, {rows, columns}, align_corners);
}

torch::Tensor resize_like(const torch::Tensor& x, const torch::Tensor& other, bool align_corners) {
  return resize_map(x, other.size(2), other.size(3), align_corners);
}

torch::Tensor enlarge_map(const torch::Tensor& x, std::int64_t factor, bool align_corners) {
  return resize_map(x, factor * x.size(2), factor * x.size(3), align_corners);
}

FcnHeadImpl::FcnHeadImpl(const FcnHeadOptions& options, std::int64_t in, std::int64_t classes,
                         torch::Device device)
    : SegmentationHeadImpl{options.convolutions ? options.channels : in, classes, options.dropout, device},
      level_{options.level} {
  TORCH_CHECK_VALUE(options.convolutions >= 0, "an FCN head of ", options.convolutions,
                    " convolutions; 0 or more are expected");
  auto convs = register_module("convs", torch::nn::ModuleList{});
  for (std::int64_t i = 0; i < options.convolutions; ++i)
    convs->push_back(
        convs_.emplace_back(conv_norm_relu(i == 0 ? in : options.channels, options.channels, 3, device)));
}

torch::Tensor FcnHeadImpl::forward(const Maps& maps) {
  auto x = maps.at(level_);
  for (const auto& conv : convs_) x = conv(x);
  return classify(x);
}

}  // namespace abl::models
