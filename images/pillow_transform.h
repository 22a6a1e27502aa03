// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "images/image.h"

namespace abl::images {

enum class Interpolation { kNearest, kBilinear, kBicubic };

/// How pixels of a moved image come about: between those of the image, and outside it.
struct Sampling {
  Interpolation interpolation = Interpolation::kNearest;
  Colour fill{};
};

/// a b c d e f: the output's point (x, y) shows the image's point (a·x + b·y + c, d·x + e·y + f). A pixel's
/// middle is at (x + 1/2, y + 1/2).
using AffineMap = std::array<double, 6>;

/// The image seen through `map`, in its own size. A point within the image is interpolated from its nearest
/// pixels, the outermost repeated; one outside has the fill colour. Bicubic: a = -1, as Pillow has it here.
/// Source: Pillow 13.0.0, Image.transform(size, AFFINE, map, resample, fillcolor=…), equal to the byte.
Image affine(const Image& image, const AffineMap& map, const Sampling& sampling);

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

/// A smaller image: each of its pixels is a mean of those it covers, weighted by a triangle as wide as the
/// reduction (antialiased bilinear). For files that are made once; training has a faster one.
/// `width`, `height`: at most the image's.
Image shrink(const Image& image, int width, int height);

}  // namespace abl::images
