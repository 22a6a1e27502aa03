// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace abl::config {

/// To how many pixels the shorter side of an image is scaled before its centre of `image_size` is evaluated:
/// floor(image_size / crop_ratio), as torchvision's and timm's evaluations have it; 0.875 of 224 gives 256.
int evaluation_side(int image_size, double crop_ratio);

/// The ratio of the fewest digits that gives so many pixels; 1 where the whole image is evaluated.
double crop_ratio_of(int image_size, int side);

}  // namespace abl::config
