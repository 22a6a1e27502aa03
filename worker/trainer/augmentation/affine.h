// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

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

}  // namespace abl::trainer
