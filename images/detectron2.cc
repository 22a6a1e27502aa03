// SPDX-License-Identifier: Apache-2.0
#include "images/detectron2.h"

#include <algorithm>
#include <cmath>

namespace abl::images {

Annotated large_scale_jitter(Annotated picture, const LargeScaleJitter& options, RandomStream& random) {
  if (random.uniform() < options.flip) flip(picture);
  const double part = random.uniform(options.low, options.high);
  const double scale =
      std::min(options.width * part / picture.image.width, options.height * part / picture.image.height);
  const auto scaled = [&](int side) { return std::max(1, static_cast<int>(std::nearbyint(side * scale))); };
  picture = resized(picture, scaled(picture.image.width), scaled(picture.image.height));
  const double place = random.uniform();
  const auto offset = [&](int whole, int wanted) {
    return static_cast<int>(std::nearbyint(std::max(0, whole - wanted) * place));
  };
  return cropped(picture,
                 {offset(picture.image.width, options.width), offset(picture.image.height, options.height),
                  options.width, options.height},
                 options.fill);
}

}  // namespace abl::images
