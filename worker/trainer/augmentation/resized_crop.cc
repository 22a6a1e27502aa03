// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/resized_crop.h"

#include <cmath>

namespace abl::trainer {
namespace {

int below(int bound, RandomStream& random) {
  return static_cast<int>(random.below(static_cast<std::uint64_t>(bound)));
}
int to_even(double value) { return static_cast<int>(std::nearbyint(value)); }  // halves to even, as Python's

}  // namespace

Rectangle draw_resized_crop(int width, int height, const ResizedCrop& ranges, RandomStream& random) {
  const double area = 1.0 * width * height;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * random.uniform(ranges.area_low, ranges.area_high);
    const double aspect = std::exp(random.uniform(std::log(ranges.aspect_low), std::log(ranges.aspect_high)));
    const int w = to_even(std::sqrt(target * aspect)), h = to_even(std::sqrt(target / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const int left = below(width - w + 1, random), top = below(height - h + 1, random);
    return {left, top, w, h};
  }
  const double aspect = 1.0 * width / height;
  const int w = aspect > ranges.aspect_high ? to_even(height * ranges.aspect_high) : width;
  const int h = aspect < ranges.aspect_low ? to_even(width / ranges.aspect_low) : height;
  return {(width - w) / 2, (height - h) / 2, w, h};
}

}  // namespace abl::trainer
