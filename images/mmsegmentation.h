// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/joint.h"
#include "images/random.h"

namespace abl::images {

// Source: mmsegmentation 1.2, datasets/transforms/transforms.py, with the operations of OpenCV below it.

/// The size of a picture that is as large as fits `longer` by `shorter` pixels, whichever way it lies.
/// Source: mmcv 2.1, image/geometric.py, rescale_size.
Size size_within(int width, int height, int longer, int shorter);

/// `size_within` so many pixels times a random ratio. Source: RandomResize with keep_ratio.
struct RandomRatio {
  int longer = 2048, shorter = 512;
  double low = 0.5, high = 2;
};
/// Draws: the ratio. Deviation: the image is antialiased (`resized`).
Annotated random_ratio(const Annotated& picture, const RandomRatio& options, RandomStream& random);

/// A part of a map at a random place, drawn up to eleven times until no class has `most` of its labelled
/// pixels or more, and more than one class is in it. Smaller where the map is. Source: RandomCrop with
/// cat_max_ratio. Draws: top and left, each time.
Rectangle draw_mixed_crop(const LabelMap& labels, int width, int height, double most, RandomStream& random);

/// Half of all pictures each get another brightness, contrast (before or after the others), saturation and
/// hue. Source: PhotoMetricDistortion.
struct PhotometricDistortion {
  double brightness = 32;  ///< added: -brightness … brightness, of 255
  double contrast_low = 0.5, contrast_high = 1.5;
  double saturation_low = 0.5, saturation_high = 1.5;
  int hue = 18;  ///< turned: -hue … hue - 1, of 180
};
/// Draws: each change, and where it is made its strength, in the order in which they are made.
void distort(Image& image, const PhotometricDistortion& options, RandomStream& random);

/// Each byte becomes scale·byte + offset, cut to a byte towards zero; single precision.
void scale_bytes(Image& image, double scale, double offset);
/// By way of OpenCV's HSV of bytes: the saturation times a factor, cut as scale_bytes does.
void scale_saturation(Image& image, double factor);
/// By way of OpenCV's HSV of bytes. Units: `turn` is of 180 a full turn.
void turn_hue(Image& image, int turn);

/// All of ADE20K's for training: ratio, crop, flip, distortion, and a frame to the crop's size.
struct SegmentationRecipe {
  RandomRatio ratio;
  int width = 512, height = 512;  ///< of what comes out
  double most = 0.75;             ///< of draw_mixed_crop
  double flip = 0.5;
  bool distorts = true;
  PhotometricDistortion distortion;
  Colour fill{124, 116, 104};  ///< ImageNet's mean: 0 once it is normalised, as there
};
Annotated segmentation_view(const Annotated& picture, const SegmentationRecipe& recipe, RandomStream& random);

}  // namespace abl::images
