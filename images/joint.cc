// SPDX-License-Identifier: Apache-2.0
#include "images/joint.h"

#include <algorithm>
#include <optional>

#include "images/masks/mask.h"
#include "images/pillow_transform.h"
#include "images/torchvision.h"

namespace abl::images {
namespace {

Box part_of(const Box& box, const Rectangle& region) {
  const double left = std::max(0.0, box.left - region.left), top = std::max(0.0, box.top - region.top);
  return {left, top, std::min<double>(region.width, box.right() - region.left) - left,
          std::min<double>(region.height, box.bottom() - region.top) - top};
}

bool lies_in(const Box& box, const Rectangle& region) {
  return box.left >= region.left && box.top >= region.top && box.right() <= region.left + region.width &&
         box.bottom() <= region.top + region.height;
}

/// Nothing where nothing is left.
std::optional<Instance> part_of(const Instance& thing, const Rectangle& region) {
  Instance part = thing;
  part.box = part_of(thing.box, region);
  if (part.box.empty()) return std::nullopt;
  if (thing.has_mask()) part.mask = cropped(thing.mask, region);
  if (lies_in(thing.box, region)) return part;
  if (thing.has_mask()) {
    part.box = bounds(part.mask);
    if (part.box.empty()) return std::nullopt;
  }
  part.area = thing.has_mask() ? static_cast<double>(area(part.mask)) : part.box.area();
  return part;
}

}  // namespace

void flip(Annotated& picture) {
  flip(picture.image);
  for (Instance& thing : picture.instances) {
    thing.box.left = picture.image.width - thing.box.right();
    if (thing.has_mask()) thing.mask = flipped(thing.mask);
  }
  for (int y = 0; y < picture.labels.height; ++y)
    std::reverse(picture.labels.row(y), picture.labels.row(y) + picture.labels.width);
}

LabelMap resized(const LabelMap& labels, int width, int height) {
  if (labels.empty()) return {};
  LabelMap out = labelled(width, height, 0);
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* from = labels.row(static_cast<int>(std::int64_t{1} * y * labels.height / height));
    std::uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x) to[x] = from[std::int64_t{1} * x * labels.width / width];
  }
  return out;
}

LabelMap cropped(const LabelMap& labels, const Rectangle& region) {
  if (labels.empty()) return {};
  LabelMap out = labelled(region.width, region.height, LabelMap::kIgnored);
  const int from = std::max(0, region.left), to = std::min(labels.width, region.left + region.width);
  for (int y = 0; y < region.height && from < to; ++y)
    if (const int row = region.top + y; row >= 0 && row < labels.height)
      std::copy(labels.row(row) + from, labels.row(row) + to, out.row(y) + (from - region.left));
  return out;
}

Annotated resized(const Annotated& picture, int width, int height) {
  const double across = static_cast<double>(width) / picture.image.width,
               down = static_cast<double>(height) / picture.image.height;
  Annotated out{.image = resize(picture.image, width, height, Interpolation::kBilinear),
                .instances = {},
                .labels = resized(picture.labels, width, height)};
  for (const Instance& thing : picture.instances)
    out.instances.push_back({.category = thing.category,
                             .box = {thing.box.left * across, thing.box.top * down, thing.box.width * across,
                                     thing.box.height * down},
                             .mask = thing.has_mask() ? resized(thing.mask, width, height) : Mask{},
                             .area = thing.area * across * down,
                             .crowd = thing.crowd});
  return out;
}

Annotated cropped(const Annotated& picture, const Rectangle& region, Colour fill) {
  Annotated out{.image = filled(region.width, region.height, fill),
                .instances = {},
                .labels = cropped(picture.labels, region)};
  copy_overlap(picture.image, region.left, region.top, out.image);
  for (const Instance& thing : picture.instances)
    if (auto part = part_of(thing, region)) out.instances.push_back(std::move(*part));
  return out;
}

Annotated padded(const Annotated& picture, int width, int height, Colour fill) {
  return cropped(
      picture,
      {.width = std::max(width, picture.image.width), .height = std::max(height, picture.image.height)},
      fill);
}

}  // namespace abl::images
