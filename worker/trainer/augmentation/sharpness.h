// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// From the smoothed image, factor 0, by way of the image itself, 1, to a sharpened one. Smoothed: each pixel
/// five times and its eight neighbours once, over 13; the outermost pixels stay, as do images of fewer than 3
/// rows or columns. Source: Pillow 13.0.0, ImageEnhance.Sharpness and ImageFilter.SMOOTH.
void sharpness(Image& image, float factor);

}  // namespace abl::trainer
