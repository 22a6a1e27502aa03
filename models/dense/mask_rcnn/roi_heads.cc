// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/roi_heads.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "models/dense/nms.h"

namespace abl::models {
namespace {

using torch::Tensor;

/// How many boxes and masks a region has.
std::int64_t outputs(const RoiHeadsOptions& options) {
  return options.classes + (options.background == BackgroundOutputs::kScoreBoxMask ? 1 : 0);
}

/// Normal with variance 2 / fan-out.
void start(const Tensor& weight, std::int64_t fan_out) {
  if (!is_started(weight.device())) return;
  const torch::NoGradGuard no_grad;
  weight.normal_(0, std::sqrt(2. / static_cast<double>(fan_out)));
}

/// Proposals with what they are to become.
struct Samples {
  std::vector<Tensor> boxes;   ///< of each image [n, 4]
  std::vector<Tensor> things;  ///< of each image [n]: which thing a box is of; any, where of none
  std::vector<Tensor> labels;  ///< of each image [n], 0 the background
  std::vector<Tensor> wanted;  ///< of each image [n, 4]: differences of the thing's box
};

Samples sampled(const std::vector<Tensor>& proposals, const std::vector<Instances>& targets,
                const BoxHeadOptions& options, const Choose& choose) {
  Samples samples;
  for (std::size_t image = 0; image < targets.size(); ++image) {
    const auto things = targets[image].boxes.to(proposals[image].options());
    const auto boxes = torch::cat({proposals[image], things});
    auto thing = torch::zeros({boxes.size(0)}, boxes.options().dtype(torch::kLong)), label = thing;
    if (things.size(0) > 0) {
      const auto matches = match(box_iou(things, boxes), options.match);
      thing = matches.clamp_min(0);
      label = targets[image].labels.index_select(0, thing);
      label = label.masked_fill(matches == kBackground, 0).masked_fill(matches == kUndecided, -1);
    }
    const auto chosen = sample(label, options.sample, image, choose);
    const auto some = std::get<0>(torch::cat({chosen.things, chosen.background}).sort());
    samples.boxes.push_back(boxes.index_select(0, some));
    samples.things.push_back(thing.index_select(0, some));
    samples.labels.push_back(label.index_select(0, some));
    const auto known = things.size(0) > 0 ? things : torch::zeros({1, 4}, things.options());
    samples.wanted.push_back(
        options.coder.encode(known.index_select(0, samples.things.back()), samples.boxes.back()));
  }
  return samples;
}

/// What of the things' masks lies in their boxes: [n, side, side].
Tensor masks_in(const Tensor& boxes, const Tensor& things, const Tensor& masks, std::int64_t side) {
  const auto rois = torch::cat({things.unsqueeze(1).to(boxes.scalar_type()), boxes}, 1);
  return roi_align(masks.unsqueeze(1), rois, /*scale=*/1, {.height = side, .width = side, .samples = 0})
      .squeeze(1);
}

}  // namespace

BoxHeadImpl::BoxHeadImpl(std::int64_t channels, const BoxHeadOptions& options, torch::Device device) {
  for (const auto out : options.convolutions) {
    ConvBlock conv{ConvBlockOptions{.in = channels, .out = out, .norm = options.norm}, device};
    convs_.push_back(register_module(std::to_string(convs_.size()), conv));
    channels = out;
  }
  auto in = channels * options.regions.height * options.regions.width;
  const bool is_plain = convs_.empty();
  for (const auto out : options.layers) {
    const auto i = layers_.size();
    // of convolutions: a flattening stands after them, and an activation after each layer
    const auto name = is_plain ? "fc" + std::to_string(6 + i) : std::to_string(convs_.size() + 1 + 2 * i);
    layers_.push_back(register_module(name, Linear{in, out, device}));
    in = out;
  }
}

Tensor BoxHeadImpl::forward(Tensor regions) {
  for (const auto& conv : convs_) regions = conv(regions);
  auto x = regions.flatten(1);
  for (const auto& layer : layers_) x = torch::relu(layer(x));
  return x;
}

BoxPredictorImpl::BoxPredictorImpl(std::int64_t in, const RoiHeadsOptions& options, torch::Device device) {
  score_ = register_module("cls_score", Linear{in, 1 + options.classes, device});
  box_ = register_module("bbox_pred", Linear{in, 4 * outputs(options), device});
}

BoxPredictorImpl::Answer BoxPredictorImpl::forward(const Tensor& x) {
  return {.logits = score_(x), .differences = box_(x).view({x.size(0), -1, 4})};
}

MaskPredictorImpl::MaskPredictorImpl(std::int64_t in, const RoiHeadsOptions& options, torch::Device device) {
  const auto hidden = options.masks.hidden;
  doubling_ = register_module("conv5_mask", UpConv2d{in, hidden, device});
  masks_ = register_module("mask_fcn_logits",
                           Conv2d{Conv2dOptions{.in = hidden, .out = outputs(options)}, device});
  start(doubling_->weight, in * 4);
  start(masks_->weight, outputs(options));
}

Tensor MaskPredictorImpl::forward(const Tensor& regions, const Tensor& outputs) {
  const auto x = torch::relu(doubling_(regions));
  const auto K = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  const auto places = x.permute({0, 2, 3, 1}).reshape({K, H * W, C});
  const auto weights = masks_->weight.view({-1, C, 1}).index_select(0, outputs);  // [K, C, 1]
  return (torch::bmm(places, weights) + masks_->bias.index_select(0, outputs).view({K, 1, 1}))
      .view({K, H, W});
}

RoiHeadsImpl::RoiHeadsImpl(std::int64_t channels, const RoiHeadsOptions& options, torch::Device device)
    : options_{options} {
  TORCH_CHECK_VALUE(options_.classes > 0 && !options_.boxes.layers.empty(), "detection of ", options_.classes,
                    " classes by ", options_.boxes.layers.size(),
                    " layers; at least one of each is expected");
  box_head_ = register_module("box_head", BoxHead{channels, options_.boxes, device});
  box_predictor_ =
      register_module("box_predictor", BoxPredictor{options_.boxes.layers.back(), options_, device});
  torch::nn::ModuleList convs;
  for (const auto out : options_.masks.convolutions) {
    mask_head_.emplace_back(ConvBlockOptions{.in = channels, .out = out, .norm = options_.masks.norm},
                            device);
    convs->push_back(mask_head_.back().ptr());
    channels = out;
  }
  register_module("mask_head", convs);
  mask_predictor_ = register_module("mask_predictor", MaskPredictor{channels, options_, device});
}

BoxPredictorImpl::Answer RoiHeadsImpl::answer(const Pyramid& pyramid, const Tensor& rois) {
  const auto regions = pyramid_roi_align(pyramid.levels, pyramid.strides, rois, options_.boxes.regions);
  return box_predictor_(box_head_(regions));
}

Tensor RoiHeadsImpl::mask_logits(const Pyramid& pyramid, const Tensor& rois, const Tensor& labels) {
  auto x = pyramid_roi_align(pyramid.levels, pyramid.strides, rois, options_.masks.regions);
  for (const auto& conv : mask_head_) x = conv(x);
  return wide(mask_predictor_(x, outputs_of(labels)));
}

RoiHeadsImpl::Shaped RoiHeadsImpl::shaped(const Pyramid& pyramid, std::int64_t regions, std::int64_t masks) {
  const auto numbers = pyramid.levels.front().options().dtype(torch::kFloat);
  return {.boxes = answer(pyramid, torch::empty({regions, 5}, numbers)),
          .masks = mask_logits(pyramid, torch::empty({masks, 5}, numbers),
                               torch::empty({masks}, numbers.dtype(torch::kLong)))};
}

Tensor RoiHeadsImpl::outputs_of(const Tensor& labels) const {
  return options_.background == BackgroundOutputs::kScoreBoxMask ? labels : labels - 1;
}

RoiHeadsImpl::Losses RoiHeadsImpl::losses(const Pyramid& pyramid, const std::vector<Tensor>& proposals,
                                          const std::vector<Instances>& targets, const Choose& choose) {
  const auto samples = sampled(proposals, targets, options_.boxes, choose);
  const auto labels = torch::cat(samples.labels);
  const auto things = (labels > 0).nonzero().squeeze(1), thing_labels = labels.index_select(0, things);
  const auto rois = as_rois(samples.boxes), thing_rois = rois.index_select(0, things);

  const auto [logits, differences] = answer(pyramid, rois);
  const auto found = wide(differences.index({things, outputs_of(thing_labels)}));  // [things, 4]
  const auto wanted = torch::cat(samples.wanted).index_select(0, things);
  const auto mask_answers = mask_logits(pyramid, thing_rois, thing_labels);  // [things, side, side]

  std::vector<Tensor> masks;
  for (std::size_t image = 0; image < targets.size(); ++image) {
    const auto some = (samples.labels[image] > 0).nonzero().squeeze(1);
    if (some.size(0) > 0)
      masks.push_back(masks_in(samples.boxes[image].index_select(0, some),
                               samples.things[image].index_select(0, some), targets[image].masks,
                               mask_answers.size(1)));
  }
  return {.classes = torch::cross_entropy_loss(wide(logits), labels),
          .boxes = torch::smooth_l1_loss(found, wanted, at::Reduction::Sum, options_.boxes.beta) /
                   std::max<std::int64_t>(1, labels.size(0)),
          .masks = masks.empty() ? mask_answers.sum() * 0
                                 : torch::binary_cross_entropy_with_logits(
                                       mask_answers, torch::cat(masks).to(mask_answers.scalar_type()))};
}

Detections RoiHeadsImpl::detections(const BoxPredictorImpl::Answer& answer, const Tensor& proposals,
                                    const ImageSize& size) const {
  const auto& options = options_.boxes;
  const auto of_classes = torch::softmax(wide(answer.logits), 1).slice(1, 1);  // [n, classes]
  const auto sure = (of_classes > options.least_score).nonzero();  // [m, 2], by proposal and class
  const auto proposal = sure.select(1, 0);
  auto labels = sure.select(1, 1) + 1, scores = of_classes.index({proposal, labels - 1});
  const auto differences = wide(answer.differences.index({proposal, outputs_of(labels)}));
  auto boxes = options.coder.decode(differences, proposals.index_select(0, proposal)).squeeze(1);
  boxes = clipped_boxes(boxes, size);
  const auto large = are_large(boxes, options.least_side);
  boxes = boxes.index({large}), labels = labels.index({large}), scores = scores.index({large});
  const auto kept = batched_nms(boxes, scores, labels, options.suppression).slice(0, 0, options.detections);
  return {.boxes = boxes.index_select(0, kept),
          .labels = labels.index_select(0, kept),
          .scores = scores.index_select(0, kept),
          .masks = {}};
}

std::vector<Detections> RoiHeadsImpl::detect(const Pyramid& pyramid, const std::vector<Tensor>& proposals,
                                             const std::vector<ImageSize>& sizes) {
  const auto all = answer(pyramid, as_rois(proposals));
  std::vector<Detections> found;
  std::vector<Tensor> boxes, labels;
  std::int64_t first = 0;
  for (const auto& some : proposals) {
    const auto end = first + some.size(0);
    found.push_back(detections({all.logits.slice(0, first, end), all.differences.slice(0, first, end)}, some,
                               sizes[found.size()]));
    boxes.push_back(found.back().boxes);
    labels.push_back(found.back().labels);
    first = end;
  }
  const auto masks = torch::sigmoid(mask_logits(pyramid, as_rois(boxes), torch::cat(labels)));
  first = 0;
  for (auto& image : found) {
    const auto end = first + image.boxes.size(0);
    image.masks = masks.slice(0, first, end);
    first = end;
  }
  return found;
}

}  // namespace abl::models
