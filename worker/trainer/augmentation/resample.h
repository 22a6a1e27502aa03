// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "worker/trainer/augmentation/affine.h"
#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// What one side of a picture becomes: `length` pixels of it, from `from` on, are scaled to `to` pixels, and
/// of these the ones from `first` on, `count` of them, are made.
struct Stretch {
  double from = 0, length = 0;
  int to = 0, first = 0, count = 0;
};

/// What each pixel of a new line is made of: `count` weighted neighbours of an old line's, as many for every
/// pixel, so that the loops over them are even.
struct Taps {
  int begin = 0, end = 0;  ///< no other pixels of the old line are used
  int count = 0;
  std::vector<int> first;    ///< for each pixel, of the old line
  std::vector<int> weights;  ///< [pixels, count]. Units: 2^-22
};

/// Antialiased, with Pillow's weights. `line`: how many pixels the old line has. `interpolation`: bilinear or
/// bicubic. Source: Pillow 13.0.0, src/libImaging/Resample.c, precompute_coeffs and normalize_coeffs_8bpc.
Taps make_taps(const Stretch& stretch, int line, Interpolation interpolation);

/// A part of a scaled picture, equal to Pillow's to the byte: first along the rows, then along the columns,
/// rounded in between. `image` holds the old picture from its pixel (left, top) on, at least all that is
/// used.
Image resample(const Image& image, int left, int top, const Taps& across, const Taps& down);

/// The whole picture, scaled.
Image resize(const Image& image, int width, int height, Interpolation interpolation);

}  // namespace abl::trainer
