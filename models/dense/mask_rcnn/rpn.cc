// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/rpn.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include <algorithm>
#include <string>

#include "models/dense/nms.h"

namespace abl::models {
namespace {

using torch::Tensor;

const BoxCoder kCoder;

void start(const Conv2d& conv) {
  if (!is_started(conv->weight.device())) return;
  const torch::NoGradGuard no_grad;
  conv->weight.normal_(0, 0.01);
  conv->bias.zero_();
}

/// [B, anchors·K, H, W] -> [B, H·W·anchors, K].
Tensor by_place(const Tensor& map, std::int64_t each) {
  return map.permute({0, 2, 3, 1}).reshape({map.size(0), -1, each});
}

/// Around the origin: [ratios, 4].
Tensor anchors_of(double size, const std::vector<double>& ratios) {
  const auto heights = torch::tensor(ratios, torch::kFloat).sqrt(), widths = 1 / heights;
  const auto h = heights * size, w = widths * size;
  return (torch::stack({-w, -h, w, h}, 1) / 2).round();
}

/// Of each level [H·W·ratios, 4], place by place, in float32.
std::vector<Tensor> make_anchors(const AnchorOptions& options, const ImageSize& image,
                                 const std::vector<Tensor>& levels) {
  TORCH_CHECK_VALUE(levels.size() == options.sizes.size(), "anchors of ", options.sizes.size(),
                    " sizes for a pyramid of ", levels.size(), " levels; a size for each is expected");
  std::vector<Tensor> all;
  for (const auto& level : levels) {
    const auto H = level.size(2), W = level.size(3);
    const auto like = level.options().dtype(torch::kFloat);
    const auto y = torch::arange(H, like).mul_(image.height / H).view({-1, 1}).expand({H, W});
    const auto x = torch::arange(W, like).mul_(image.width / W).expand({H, W});
    const auto places = torch::stack({x, y, x, y}, 2).view({-1, 1, 4});  // [H·W, 1, 4]
    all.push_back((places + anchors_of(options.sizes[all.size()], options.ratios).to(like)).view({-1, 4}));
  }
  return all;
}

/// The likeliest boxes of an image, of all levels.
struct Candidates {
  Tensor boxes, scores, levels;  ///< [n, 4], [n], [n]

  Candidates of(const Tensor& some) const {
    return {boxes.index({some}), scores.index({some}), levels.index({some})};
  }
};

}  // namespace

RpnHeadImpl::RpnHeadImpl(std::int64_t channels, std::int64_t anchors, int convolutions,
                         torch::Device device) {
  torch::nn::ModuleList convs;
  for (int i = 0; i < convolutions; ++i) {
    convs_.emplace_back(ConvBlockOptions{.in = channels, .out = channels}, device);
    convs->push_back(convs_.back().ptr());
    start(convs_.back()->conv());
  }
  register_module("conv", convs);
  logits_ = register_module("cls_logits", Conv2d{Conv2dOptions{.in = channels, .out = anchors}, device});
  boxes_ = register_module("bbox_pred", Conv2d{Conv2dOptions{.in = channels, .out = anchors * 4}, device});
  start(logits_);
  start(boxes_);
}

RpnHeadImpl::Answer RpnHeadImpl::forward(const std::vector<Tensor>& levels) {
  Answer answer;
  for (auto x : levels) {
    for (const auto& conv : convs_) x = conv(x);
    answer.logits.push_back(by_place(logits_(x), 1).squeeze(2));
    answer.differences.push_back(by_place(boxes_(x), 4));
  }
  return answer;
}

RpnImpl::RpnImpl(std::int64_t channels, const RpnOptions& options, torch::Device device) : options_{options} {
  const auto anchors = static_cast<std::int64_t>(options_.anchors.ratios.size());
  head_ = register_module("head", RpnHead{channels, anchors, options_.convolutions, device});
}

RpnImpl::Answer RpnImpl::forward(const std::vector<Tensor>& levels, const ImageBatch& batch) {
  const ImageSize padded{batch.images.size(2), batch.images.size(3)};
  Answer answer{
      .head = head_(levels), .anchors = make_anchors(options_.anchors, padded, levels), .proposals = {}};
  for (auto& anchors : answer.anchors) anchors = anchors.to(wide(answer.head.logits[0]).scalar_type());
  answer.proposals = proposals(answer, batch);
  return answer;
}

std::vector<Tensor> RpnImpl::proposals(const Answer& answer, const ImageBatch& batch) const {
  const torch::NoGradGuard no_grad;
  const auto& counts = is_training() ? options_.training : options_.evaluation;
  const auto B = batch.images.size(0);
  std::vector<Tensor> boxes, scores, levels;  // of each level, for all images
  for (std::size_t level = 0; level < answer.anchors.size(); ++level) {
    const auto& logits = answer.head.logits[level];
    const auto [likeliest, places] = logits.topk(std::min(counts.of_level, logits.size(1)), 1);
    const auto n = places.size(1);
    const auto differences =
        wide(answer.head.differences[level].gather(1, places.unsqueeze(2).expand({B, n, 4})))
            .view({B * n, 4});
    const auto anchors = answer.anchors[level].index_select(0, places.view({-1}));
    boxes.push_back(kCoder.decode(differences, anchors).view({B, n, 4}));
    scores.push_back(torch::sigmoid(wide(likeliest)));
    levels.push_back(torch::full({n}, static_cast<std::int64_t>(level), places.options()));
  }
  const auto all_boxes = torch::cat(boxes, 1), all_scores = torch::cat(scores, 1),
             all_levels = torch::cat(levels);
  std::vector<Tensor> proposals;
  for (std::int64_t image = 0; image < B; ++image) {
    const auto& size = batch.sizes[static_cast<std::size_t>(image)];
    Candidates some{clipped_boxes(all_boxes[image], size), all_scores[image], all_levels};
    some =
        some.of(are_large(some.boxes, options_.least_side).logical_and_(some.scores >= options_.least_score));
    const auto kept = batched_nms(some.boxes, some.scores, some.levels, options_.suppression);
    proposals.push_back(some.boxes.index_select(0, kept.slice(0, 0, counts.of_image)));
  }
  return proposals;
}

RpnImpl::Losses RpnImpl::losses(const Answer& answer, const std::vector<Instances>& targets,
                                const Choose& choose) const {
  const auto anchors = torch::cat(answer.anchors);                  // [A, 4]
  const auto logits = torch::cat(answer.head.logits, 1);            // [B, A]
  const auto differences = torch::cat(answer.head.differences, 1);  // [B, A, 4]
  std::vector<Tensor> things, background, wanted;  // of each image; the former two counted over all anchors
  for (std::size_t image = 0; image < targets.size(); ++image) {
    const auto boxes = targets[image].boxes.to(anchors.options());
    const auto first = static_cast<std::int64_t>(image) * anchors.size(0);
    auto matches = torch::full({anchors.size(0)}, kBackground, anchors.options().dtype(torch::kLong));
    if (boxes.size(0) > 0) matches = match(box_iou(boxes, anchors), options_.match);
    // a thing's number counts from 0, a label from 1; what is undecided stays below 0
    const auto labels = torch::where(matches == kUndecided, matches, matches + 1);
    const auto chosen = sample(labels, options_.sample, image, choose);
    things.push_back(chosen.things + first);
    background.push_back(chosen.background + first);
    if (boxes.size(0) > 0)
      wanted.push_back(kCoder.encode(boxes.index_select(0, matches.index_select(0, chosen.things)),
                                     anchors.index_select(0, chosen.things)));
  }
  const auto of_things = torch::cat(things), of_background = torch::cat(background);
  const auto sampled = of_things.size(0) + of_background.size(0);
  const auto found = wide(differences.view({-1, 4}).index_select(0, of_things));
  const auto targets_of_boxes = wanted.empty() ? torch::zeros_like(found) : torch::cat(wanted);
  const auto answers = wide(logits.view({-1}).index_select(0, torch::cat({of_things, of_background})));
  const auto truths = torch::cat({torch::ones({of_things.size(0)}, answers.options()),
                                  torch::zeros({of_background.size(0)}, answers.options())});
  return {.objectness = torch::binary_cross_entropy_with_logits(answers, truths),
          .boxes = torch::smooth_l1_loss(found, targets_of_boxes, at::Reduction::Sum, options_.beta) /
                   std::max<std::int64_t>(1, sampled)};
}

}  // namespace abl::models
