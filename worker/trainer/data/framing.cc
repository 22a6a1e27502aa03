// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/framing.h"

#include <cmath>

#include "worker/trainer/augmentation/resample.h"

namespace abl::trainer {
namespace {

/// One side of a framing: `length` pixels of a crop become `to`, of which `size` from `first` on are seen.
struct Side {
  int length, to, first, size;
  Interpolation interpolation;

  Taps at_full_scale() const {
    return make_taps({.length = static_cast<double>(length), .to = to, .first = first, .count = size}, length,
                     interpolation);
  }
  /// Of a line of `line` pixels, which shows the crop from `from` on, `shown` pixels long.
  Taps reduced(double from, double shown, int line) const {
    return make_taps({.from = from, .length = shown, .to = to, .first = first, .count = size}, line,
                     interpolation);
  }
  /// Which pixels of the crop are used: first, and how many.
  std::pair<int, int> used() const {
    if (size == to) return {0, length};
    const Taps taps = at_full_scale();
    return {taps.begin, taps.end - taps.begin};
  }
};

}  // namespace

Wanted Framing::wanted(bool reduced) const {
  if (reduced) return {.region = crop, .width = width, .height = height};
  const auto [from_left, columns] = Side{crop.width, width, left, size, interpolation}.used();
  const auto [from_top, rows] = Side{crop.height, height, top, size, interpolation}.used();
  return {.region = {
              .left = crop.left + from_left, .top = crop.top + from_top, .width = columns, .height = rows}};
}

Image Framing::of(const RegionView& view) const {
  const Side across{crop.width, width, left, size, interpolation},
      down{crop.height, height, top, size, interpolation};
  const auto& region = view.region;
  if (region == crop && view.width < crop.width)
    return resample(view.image, 0, 0, across.reduced(view.left, view.width, view.image.width),
                    down.reduced(view.top, view.height, view.image.height));
  return resample(view.image, region.left - crop.left, region.top - crop.top, across.at_full_scale(),
                  down.at_full_scale());
}

Framing frame_centre(int width, int height, int resize, int size, Interpolation interpolation) {
  const auto longer = [&](int side, int other) {
    return side <= other ? resize : static_cast<int>(1.0 * resize * side / other);
  };
  // to the nearest, halves to even, as Python rounds
  const auto margin = [&](int side) { return static_cast<int>(std::nearbyint((side - size) / 2.0)); };
  Framing framing{.crop = {.width = width, .height = height},
                  .width = longer(width, height),
                  .height = longer(height, width),
                  .size = size,
                  .interpolation = interpolation};
  framing.left = margin(framing.width), framing.top = margin(framing.height);
  return framing;
}

}  // namespace abl::trainer
