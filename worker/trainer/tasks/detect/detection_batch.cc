// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/detect/detection_batch.h"

#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <utility>

namespace abl::tasks {
namespace {

std::int64_t padded(std::int64_t side) { return (side + kPaddedTo - 1) / kPaddedTo * kPaddedTo; }

torch::Tensor bytes_of(const std::uint8_t* first, torch::IntArrayRef shape) {
  return torch::from_blob(const_cast<std::uint8_t*>(first), shape, torch::kUInt8);
}

}  // namespace

DetectionBatch DetectionBatch::narrow(std::int64_t first, std::int64_t count) const {
  return {.images = {.images = images.images.narrow(0, first, count),
                     .sizes = {images.sizes.begin() + first, images.sizes.begin() + first + count}},
          .targets = {targets.begin() + first, targets.begin() + first + count}};
}

models::ImageBatch padded_images(std::span<const images::Annotated> pictures, const BatchInput& input,
                                 torch::Device device) {
  const auto count = static_cast<std::int64_t>(pictures.size());
  models::ImageBatch batch;
  std::int64_t height = 0, width = 0;
  for (const auto& [image, instances, labels] : pictures) {
    batch.sizes.push_back({.height = image.height, .width = image.width});
    height = std::max(height, padded(image.height)), width = std::max(width, padded(image.width));
  }
  const auto pixels = torch::zeros({count, height, width, 3},
                                   torch::TensorOptions{torch::kUInt8}.pinned_memory(device.is_cuda()));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& image = pictures[static_cast<std::size_t>(i)].image;
    pixels[i]
        .narrow(0, 0, image.height)
        .narrow(1, 0, image.width)
        .copy_(bytes_of(image.pixels.data(), {image.height, image.width, 3}));
  }
  batch.images = input.images({.images = pixels, .labels = {}, .erased = {}});
  for (std::int64_t i = 0; i < count; ++i) {  // black is not 0 once it is normalised
    const auto& size = batch.sizes[static_cast<std::size_t>(i)];
    batch.images[i].narrow(1, size.height, height - size.height).zero_();
    batch.images[i].narrow(2, size.width, width - size.width).zero_();
  }
  return batch;
}

models::Instances targets_of(const images::Annotated& picture, torch::Device device) {
  const auto width = picture.image.width, height = picture.image.height;
  std::vector<float> corners;
  std::vector<std::int64_t> labels;
  std::vector<torch::Tensor> masks;
  for (const auto& thing : picture.instances) {
    if (thing.crowd) continue;
    const double left = std::max(0.0, thing.box.left), right = std::min<double>(width, thing.box.right()),
                 top = std::max(0.0, thing.box.top), bottom = std::min<double>(height, thing.box.bottom());
    const std::array box{static_cast<float>(left), static_cast<float>(top), static_cast<float>(right),
                         static_cast<float>(bottom)};
    const bool has_sides = box[0] < box[2] && box[1] < box[3];
    if (!has_sides || images::area(thing.mask) == 0) continue;
    corners.insert(corners.end(), box.begin(), box.end());
    labels.push_back(1 + thing.category);
    masks.push_back(bytes_of(images::pixels_of(thing.mask).data(), {height, width}).clone());
  }
  const auto count = static_cast<std::int64_t>(labels.size());
  const auto there = [&](const torch::Tensor& tensor) { return tensor.to(device); };
  return {.boxes = there(torch::tensor(corners, torch::kFloat).view({count, 4})),
          .labels = there(torch::tensor(labels, torch::kLong)),
          .masks = there(count > 0 ? torch::stack(masks) : torch::zeros({0, height, width}, torch::kUInt8))};
}

std::vector<bool> lying(const data::AnnotatedSource& pictures) {
  std::vector<bool> lies;
  for (std::uint32_t i = 0; i < pictures.size(); ++i) {
    const auto [width, height] = pictures.extent(i);
    lies.push_back(width > height);
  }
  return lies;
}

std::vector<std::uint32_t> by_aspect(const std::vector<std::uint32_t>& order, const std::vector<bool>& lies,
                                     std::size_t batch) {
  std::vector<std::uint32_t> grouped;
  std::array<std::vector<std::uint32_t>, 2> begun;  // batches: of pictures that stand, and that lie
  for (const auto picture : order) {
    auto& kind = begun[lies[picture] ? 1 : 0];
    kind.push_back(picture);
    if (kind.size() < batch) continue;
    grouped.insert(grouped.end(), kind.begin(), kind.end());
    kind.clear();
  }
  for (const auto& kind : begun) grouped.insert(grouped.end(), kind.begin(), kind.end());
  return grouped;
}

AspectOrder::AspectOrder(std::int64_t seed, std::vector<bool> lies, std::int64_t batch)
    : order_{seed, static_cast<std::uint32_t>(lies.size())},
      lies_{std::move(lies)},
      batch_{static_cast<std::size_t>(batch)} {}

const std::vector<std::uint32_t>& AspectOrder::of(std::uint64_t epoch) {
  if (epoch_ != epoch) grouped_ = by_aspect(*order_.of(epoch), lies_, batch_), epoch_ = epoch;
  return grouped_;
}

}  // namespace abl::tasks
