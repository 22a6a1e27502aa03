// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// Random erasing with one rectangle of noise, timm's mode "pixel". Source: timm 1.0.31,
/// data/random_erasing.py.
struct RandomErasing {
  double probability = 0.25;
  double area_low = 0.02, area_high = 1.0 / 3;       ///< as parts of the image's
  double aspect_low = 0.3, aspect_high = 1.0 / 0.3;  ///< height over width
};

/// What to erase once the image is normalised: each value of the rectangle becomes a standard normal draw, of
/// a stream seeded with `noise_seed`.
struct Erasure {
  Rectangle rectangle;  ///< smaller than the image; without area, sometimes, in an image of a few pixels
  std::uint64_t noise_seed = 0;
};

/// Nothing when the image stays whole: by chance, or after ten rectangles that did not fit.
std::optional<Erasure> draw_erasure(int width, int height, const RandomErasing& options,
                                    RandomStream& random);

}  // namespace abl::trainer
