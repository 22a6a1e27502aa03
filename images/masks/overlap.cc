// SPDX-License-Identifier: Apache-2.0
#include "images/masks/overlap.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::images {
namespace {

void expect_same_picture(const Mask& a, const Mask& b) {
  if (a.width != b.width || a.height != b.height)
    throw Error{Code::kInvalidArgument,
                fmt::format("mask sizes {}×{} and {}×{} differ; expected masks of the same image", a.width,
                            a.height, b.width, b.height)};
}

/// Calls `stretch(in_a, in_b, pixels)` for the pixels between every two changes of either.
template <class Stretch>
void walk_both(const Mask& a, const Mask& b, const Stretch& stretch) {
  expect_same_picture(a, b);
  std::size_t i = 0, j = 0;
  std::uint32_t left_a = 0, left_b = 0;
  while (true) {
    while (left_a == 0 && i < a.runs.size()) left_a = a.runs[i++];
    while (left_b == 0 && j < b.runs.size()) left_b = b.runs[j++];
    const std::uint32_t pixels = std::min(left_a, left_b);
    if (pixels == 0) return;
    stretch(i % 2 == 0, j % 2 == 0, pixels);  // after the first run, which is outside, i is 1
    left_a -= pixels, left_b -= pixels;
  }
}

Mask merged(const Mask& a, const Mask& b, Merge how) {
  MaskWriter writer{a.width, a.height};
  walk_both(a, b, [&](bool in_a, bool in_b, std::uint32_t pixels) {
    writer.add(how == Merge::kUnion ? in_a || in_b : in_a && in_b, pixels);
  });
  return std::move(writer).finish();
}

double ratio(double common, double found, double truth, Against against) {
  return common / (against == Against::kCrowd ? found : found + truth - common);
}

}  // namespace

Mask merged(std::span<const Mask> masks, Merge how) {
  if (masks.empty()) throw Error{Code::kInvalidArgument, "no mask to merge; expected at least one"};
  Mask all = masks.front();
  for (const Mask& mask : masks.subspan(1)) all = merged(all, mask, how);
  return all;
}

std::uint64_t common_pixels(const Mask& a, const Mask& b) {
  std::uint64_t common = 0;
  walk_both(a, b, [&](bool in_a, bool in_b, std::uint32_t pixels) { common += in_a && in_b ? pixels : 0; });
  return common;
}

double overlap(const Box& found, const Box& truth, Against against) {
  const double width = std::min(found.right(), truth.right()) - std::max(found.left, truth.left);
  const double height = std::min(found.bottom(), truth.bottom()) - std::max(found.top, truth.top);
  if (width <= 0 || height <= 0) return 0;
  return ratio(width * height, found.area(), truth.area(), against);
}

double overlap(const Mask& found, const Box& found_box, const Mask& truth, const Box& truth_box,
               Against against) {
  if (overlap(found_box, truth_box, Against::kThing) <= 0) {
    expect_same_picture(found, truth);
    return 0;
  }
  const std::uint64_t common = common_pixels(found, truth);
  if (common == 0) return 0;
  return ratio(static_cast<double>(common), static_cast<double>(area(found)),
               static_cast<double>(area(truth)), against);
}

double overlap(const Mask& found, const Mask& truth, Against against) {
  return overlap(found, bounds(found), truth, bounds(truth), against);
}

}  // namespace abl::images
