// SPDX-License-Identifier: Apache-2.0
#include "models/dense/mask_rcnn/mask_rcnn.h"

#include <torch/utils.h>

#include <algorithm>

namespace abl::models {
namespace {

using torch::Tensor;

/// A name before others.
class FolderImpl : public torch::nn::Module {};

void check(const ImageBatch& batch) {
  TORCH_CHECK_VALUE(
      batch.images.dim() == 4 && batch.images.size(0) == static_cast<std::int64_t>(batch.sizes.size()),
      "images ", batch.images.sizes(), " and ", batch.sizes.size(),
      " sizes; [B, 3, H, W] and a size for each are expected");
  for (const auto& size : batch.sizes)
    TORCH_CHECK_VALUE(size.height > 0 && size.width > 0 && size.height <= batch.images.size(2) &&
                          size.width <= batch.images.size(3),
                      "an image of ", size.height, " x ", size.width, " in a batch of ", batch.images.size(2),
                      " x ", batch.images.size(3));
}

void check(const Instances& things, std::size_t image, std::int64_t classes) {
  const auto N = things.boxes.size(0);
  TORCH_CHECK_VALUE(things.boxes.dim() == 2 && things.boxes.size(1) == 4 && things.labels.dim() == 1 &&
                        things.labels.size(0) == N && things.masks.dim() == 3 && things.masks.size(0) == N,
                    "image ", image, " has boxes ", things.boxes.sizes(), ", labels ", things.labels.sizes(),
                    " and masks ", things.masks.sizes(), "; [N, 4], [N] and [N, h, w] are expected");
  if (N == 0) return;
  const auto is_empty = (things.boxes.narrow(1, 2, 2) <= things.boxes.narrow(1, 0, 2)).any(1).nonzero();
  if (is_empty.size(0) > 0) {
    const auto thing = is_empty[0].item<std::int64_t>();
    TORCH_CHECK_VALUE(false, "box ", thing, " of image ", image, " is ",
                      things.boxes[thing][0].item<double>(), ", ", things.boxes[thing][1].item<double>(),
                      " to ", things.boxes[thing][2].item<double>(), ", ",
                      things.boxes[thing][3].item<double>(), "; a positive width and height are expected");
  }
  const auto least = things.labels.min().item<std::int64_t>(),
             most = things.labels.max().item<std::int64_t>();
  TORCH_CHECK_VALUE(least >= 1 && most <= classes, "image ", image, " has a thing of class ",
                    least < 1 ? least : most, "; 1 to ", classes, " are expected");
}

/// Where a mask lies: whole pixels, of which some may be outside the image.
struct Rectangle {
  std::int64_t left, top, width, height;
};

Rectangle place_of(const Tensor& box, std::int64_t side) {  // box [4], on the processor
  const double grown = static_cast<double>(side + 2) / static_cast<double>(side);
  const auto whole = [&](std::int64_t low, double sign) {
    const auto half = (box[low + 2] - box[low]) * 0.5 * grown, middle = (box[low + 2] + box[low]) * 0.5;
    return (middle + sign * half).item<double>();
  };
  const auto left = static_cast<std::int64_t>(whole(0, -1)), right = static_cast<std::int64_t>(whole(0, 1));
  const auto top = static_cast<std::int64_t>(whole(1, -1)), bottom = static_cast<std::int64_t>(whole(1, 1));
  return {left, top, std::max<std::int64_t>(1, right - left + 1),
          std::max<std::int64_t>(1, bottom - top + 1)};
}

/// Calls put(i, to, values) with what of mask i is in the image.
template <class Put>
void paste(const Tensor& masks, const Tensor& boxes, const ImageSize& size, Put put) {
  const auto here = boxes.to(torch::kCPU);
  const auto padded = torch::constant_pad_nd(masks, {1, 1, 1, 1}).unsqueeze(1);
  for (std::int64_t i = 0; i < masks.size(0); ++i) {
    const auto place = place_of(here[i], masks.size(2));
    const auto left = std::max<std::int64_t>(0, place.left), top = std::max<std::int64_t>(0, place.top);
    const auto right = std::min(place.left + place.width, size.width),
               bottom = std::min(place.top + place.height, size.height);
    if (left >= right || top >= bottom) continue;
    const auto resized = torch::upsample_bilinear2d(padded.narrow(0, i, 1), {place.height, place.width},
                                                    /*align_corners=*/false)[0][0];
    put(i, left, top,
        resized.slice(0, top - place.top, bottom - place.top)
            .slice(1, left - place.left, right - place.left));
  }
}

}  // namespace

MaskRcnnOptions MaskRcnnOptions::with_norms() {
  MaskRcnnOptions options;
  options.norm = options.heads.boxes.norm = options.heads.masks.norm = HeadNorm::kBatch;
  options.proposals.convolutions = 2;
  options.heads.boxes.convolutions = {256, 256, 256, 256};
  options.heads.boxes.layers = {1024};
  return options;
}

MaskRcnnImpl::MaskRcnnImpl(const MaskRcnnOptions& options, const std::shared_ptr<torch::nn::Module>& body,
                           torch::Device device)
    : options_{options}, maps_{dynamic_cast<FeatureMaps*>(body.get())} {
  TORCH_CHECK_VALUE(maps_, "a backbone of type ", body ? body->name() : "none",
                    "; expected one with feature maps");
  const auto strides = maps_->strides();
  for (std::size_t i = 1; i < strides.size(); ++i)
    TORCH_CHECK_VALUE(strides[i] == 2 * strides[i - 1], "a backbone with maps of strides ", strides,
                      "; each twice the one before is expected");
  fpn_ = Fpn{FpnOptions{.in = maps_->channels(), .out = options_.width, .norm = options_.norm}, device};
  const auto backbone = register_module("backbone", std::make_shared<FolderImpl>());
  backbone->register_module("body", body);
  backbone->register_module("fpn", fpn_);
  rpn_ = register_module("rpn", Rpn{options_.width, options_.proposals, device});
  heads_ = register_module("roi_heads", RoiHeads{options_.width, options_.heads, device});
}

std::vector<Tensor> MaskRcnnImpl::levels(const ImageBatch& batch) {
  check(batch);
  // Convolutions are as fast so as otherwise or faster, and regions are taken channels last.
  return fpn_(maps_->maps(batch.images.contiguous(torch::MemoryFormat::ChannelsLast)));
}

RoiHeadsImpl::Pyramid MaskRcnnImpl::pyramid(const std::vector<Tensor>& levels) const {
  return {.levels = {levels.begin(), levels.end() - 1}, .strides = maps_->strides()};
}

MaskRcnnImpl::Losses MaskRcnnImpl::losses(const ImageBatch& batch, const std::vector<Instances>& targets,
                                          const Choose& choose) {
  TORCH_CHECK_VALUE(targets.size() == batch.sizes.size(), targets.size(), " targets for ", batch.sizes.size(),
                    " images; one for each is expected");
  for (std::size_t image = 0; image < targets.size(); ++image)
    check(targets[image], image, options_.heads.classes);
  const auto all = levels(batch);
  const auto proposals = rpn_(all, batch);
  const auto [objectness, places] = rpn_->losses(proposals, targets, choose);
  const auto heads = heads_->losses(pyramid(all), proposals.proposals, targets, choose);
  return {.classes = heads.classes,
          .boxes = heads.boxes,
          .masks = heads.masks,
          .objectness = objectness,
          .proposals = places};
}

std::vector<Detections> MaskRcnnImpl::detect(const ImageBatch& batch) {
  const auto all = levels(batch);
  const auto proposals = rpn_(all, batch);
  return heads_->detect(pyramid(all), proposals.proposals, batch.sizes);
}

Tensor MaskRcnnImpl::shaped(const Tensor& images, std::int64_t regions, std::int64_t masks) {
  const auto B = images.size(0);
  const auto all = fpn_(maps_->maps(images.contiguous(torch::MemoryFormat::ChannelsLast)));
  const auto proposals = rpn_->answer(all);
  const auto heads = heads_->shaped(pyramid(all), B * regions, B * masks);
  auto sum = heads.boxes.logits.to(torch::kFloat).sum() + heads.boxes.differences.to(torch::kFloat).sum() +
             heads.masks.sum();
  for (const auto& answers : {proposals.logits, proposals.differences})
    for (const auto& level : answers) sum = sum + level.to(torch::kFloat).sum();
  return sum;
}

Tensor pasted_masks(const Tensor& masks, const Tensor& boxes, const ImageSize& size) {
  auto all = torch::zeros({masks.size(0), size.height, size.width}, masks.options());
  paste(masks, boxes, size, [&](std::int64_t i, std::int64_t left, std::int64_t top, const Tensor& values) {
    all[i].narrow(0, top, values.size(0)).narrow(1, left, values.size(1)).copy_(values);
  });
  return all;
}

Tensor pasted_masks(const Tensor& masks, const Tensor& boxes, const ImageSize& size, double threshold) {
  auto all = torch::zeros({masks.size(0), size.height, size.width}, masks.options().dtype(torch::kBool));
  paste(masks, boxes, size, [&](std::int64_t i, std::int64_t left, std::int64_t top, const Tensor& values) {
    all[i].narrow(0, top, values.size(0)).narrow(1, left, values.size(1)).copy_(values >= threshold);
  });
  return all;
}

}  // namespace abl::models
