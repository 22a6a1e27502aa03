// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/affine.h"

namespace abl::trainer {

// Source: timm 1.0.31, data/auto_augment.py, and Pillow 13.0.0 below it.

/// The pixel (x, y) shows (x + factor·y, y) of the image: rows shift to the left, more so further down.
Image shear_x(const Image& image, double factor, const Sampling& sampling);

/// The pixel (x, y) shows (x, y + factor·x) of the image.
Image shear_y(const Image& image, double factor, const Sampling& sampling);

/// The pixel (x, y) shows (x + right, y + down) of the image, which therefore moves to the left and up.
/// Units: pixels, not only whole ones.
Image translate(const Image& image, double right, double down, const Sampling& sampling);

/// `translate` by parts of the image's width and height.
Image translate_relative(const Image& image, double right, double down, const Sampling& sampling);

/// Counter-clockwise about the image's centre, in its own size. Half turns, and quarter turns of a square,
/// are exact. Source: Image.rotate.
Image rotate(const Image& image, double degrees, const Sampling& sampling);

}  // namespace abl::trainer
