// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// Ranges of the field's usual random resized crop.
struct ResizedCrop {
  double area_low = 0.08, area_high = 1;               ///< as parts of the image's
  double aspect_low = 3.0 / 4, aspect_high = 4.0 / 3;  ///< width over height
};

/// A rectangle of uniform area and log-uniform aspect that lies in the image; after ten misses the largest
/// one in the centre of which the aspect is in range. Source: torchvision 0.29, RandomResizedCrop.get_params.
/// Draws: area, aspect, left, top (there top, left).
Rectangle draw_resized_crop(int width, int height, const ResizedCrop& ranges, RandomStream& random);

}  // namespace abl::trainer
