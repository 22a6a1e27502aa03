// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "images/pillow_transform.h"
#include "images/random.h"

namespace abl::images {

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

/// RandAugment as timm has it. Defaults are timm's. Source: timm 1.0.31, data/auto_augment.py,
/// rand_augment_transform; fill and translation as its data/transforms_factory.py sets them for ImageNet's
/// mean.
struct RandAugment {
  int magnitude = 10;
  /// Of the normal draw about `magnitude` for each operation; infinite: uniform between 0 and `magnitude`.
  double magnitude_std = 0;
  int magnitude_max = 10;    ///< draws end there and at 0, and so does `magnitude` itself
  int operations = 2;        ///< drawn for each image, with replacement
  double probability = 0.5;  ///< that one drawn is applied
  bool increasing = false;   ///< the operations that all grow stronger with the magnitude
  Colour fill{124, 116, 104};
  double translation = 0.45;  ///< at magnitude 10, as a part of the image's side
  /// Nothing: bilinear or bicubic, at random for each operation.
  std::optional<Interpolation> interpolation;
};

/// Reads "rand-m9-mstd0.5-inc1". After rand, in any order, at most once each: m magnitude, mstd its standard
/// deviation (above 100: infinite), mmax its maximum, n operations, p probability, inc 0 or 1.
/// Throws: Error{kInvalidArgument}, one line, for anything else; timm passes over some of that. Sets of
/// operations (t…) are Error{kUnimplemented}.
RandAugment parse_rand_augment(std::string_view text);

/// Draws: the operations; then for each its application, magnitude, sign and interpolation, as far as needed.
void rand_augment(Image& image, const RandAugment& options, RandomStream& random);

}  // namespace abl::images
