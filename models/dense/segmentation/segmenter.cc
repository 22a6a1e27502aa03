// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/segmenter.h"

#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <utility>

namespace abl::models {
namespace {

std::shared_ptr<torch::nn::Module> as_module(const std::shared_ptr<FeatureMaps>& maps) {
  auto module = std::dynamic_pointer_cast<torch::nn::Module>(maps);
  TORCH_CHECK_VALUE(module, "the backbone of a segmenter is no module, so that nothing of it would train");
  return module;
}

}  // namespace

SegmenterImpl::SegmenterImpl(std::shared_ptr<FeatureMaps> backbone, const SegmenterOptions& options,
                             torch::Device device)
    : backbone_{std::move(backbone)} {
  register_module("backbone", as_module(backbone_));
  std::visit([&](const auto& head) { add(head, options.classes, device); }, options.head);
}

void SegmenterImpl::add(const SemanticFpnOptions& options, std::int64_t classes, torch::Device device) {
  const auto channels = backbone_->channels();
  const auto width = channels.front();
  pyramid_ = register_module("neck",
                             Fpn{FpnOptions{.in = channels, .out = width, .has_extra_level = false}, device});
  const std::vector<std::int64_t> levels(channels.size(), width);
  decode_head_ = register_module(
      "decode_head", new_head<SemanticFpnHeadImpl>(options, levels, backbone_->strides(), classes, device));
}

void SegmenterImpl::add(const UperNetOptions& options, std::int64_t classes, torch::Device device) {
  const auto channels = backbone_->channels();
  decode_head_ =
      register_module("decode_head", new_head<UperNetHeadImpl>(options, channels, classes, device));
  const auto& auxiliary = options.auxiliary;
  TORCH_CHECK_VALUE(auxiliary.level < channels.size(), "an auxiliary head on map ", auxiliary.level, " of ",
                    channels.size(), ", counted from 0");
  auxiliary_heads_ = {new_head<FcnHeadImpl>(auxiliary, channels[auxiliary.level], classes, device)};
  register_module("auxiliary_head", auxiliary_heads_.front());
}

void SegmenterImpl::add(const SetrOptions& options, std::int64_t classes, torch::Device device) {
  const auto channels = backbone_->channels(), strides = backbone_->strides();
  const bool are_alike = std::ranges::all_of(strides, [&](auto stride) { return stride == strides.front(); });
  TORCH_CHECK_VALUE(are_alike, "SETR over maps of strides [", strides, "]; those of one stride are expected");
  if (options.decoder == SetrDecoder::kMla)
    aggregation_ = register_module("neck", MlaNeck{channels, options.channels, device});
  decode_head_ = register_module("decode_head", new_setr_head(options, channels, classes, device));
  auxiliary_heads_ = new_setr_auxiliary_heads(options, channels, classes, device);
  auto heads = register_module("auxiliary_head", torch::nn::ModuleList{});
  for (const auto& head : auxiliary_heads_) heads->push_back(head.ptr());
}

Maps SegmenterImpl::features(const torch::Tensor& images) {
  auto maps = backbone_->maps(images);
  if (pyramid_) return pyramid_(maps);
  if (aggregation_) return aggregation_(maps);
  return maps;
}

SegmenterAnswers SegmenterImpl::answer(const torch::Tensor& images) {
  const auto maps = features(images);
  SegmenterAnswers answers{.logits = decode_head_(maps)};
  for (const auto& head : auxiliary_heads_) answers.auxiliary.push_back(head(maps));
  return answers;
}

SegmentationLosses segmentation_losses(const SegmenterAnswers& answers, const torch::Tensor& labels,
                                       const PixelLossOptions& options, double auxiliary_weight) {
  SegmentationLosses losses{.decode = pixel_loss(answers.logits, labels, options)};
  losses.total = losses.decode;
  for (const auto& logits : answers.auxiliary) {
    losses.auxiliary.push_back(pixel_loss(logits, labels, options));
    losses.total = losses.total + auxiliary_weight * losses.auxiliary.back();
  }
  return losses;
}

}  // namespace abl::models
