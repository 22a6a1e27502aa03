// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "images/image.h"
#include "images/random.h"
#include "images/torchvision.h"

namespace abl::images {

/// DINO's views of an image: two global ones, large parts of it, and some local ones, small parts. Sizes and
/// areas are those of the release's arguments.
/// Source: Caron et al. (ICCV 2021), section 3.1 and "Implementation details"; facebookresearch/dino,
///         DataAugmentationDINO, GaussianBlur and Solarization.
struct MultiCrop {
  int global_size = 224, local_size = 96;  ///< sides of the views, in pixels
  int locals = 8;
  ResizedCrop global{.area_low = 0.4, .area_high = 1};
  ResizedCrop local{.area_low = 0.05, .area_high = 0.4};
  double flip = 0.5;
  ColourJitter jitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.2, .hue = 0.1};
  double jitter_probability = 0.8, grayscale = 0.2;
  double first_blur = 1, second_blur = 0.1, local_blur = 0.5;  ///< probabilities
  double blur_low = 0.1, blur_high = 2;                        ///< radius, in pixels of the view; 0: no blur
  double solarise = 0.2;                                       ///< of the second global view
};

struct MultiCropViews {
  std::vector<Image> globals, locals;
};

/// Views of the whole image, at full scale, each cropped and scaled as Pillow does it, bicubic. Draws, view
/// by view: the crop, whether it is flipped, whether its colours change and how, whether it is grey, whether
/// it is blurred and how far, whether it is solarised where it may be.
MultiCropViews multi_crop(const Image& image, const MultiCrop& options, RandomStream& random);

}  // namespace abl::images
