// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/colour_jitter.h"

namespace abl::trainer {

/// One of grayscale, solarisation and Gaussian blur, with equal chances, then colour jitter.
struct ThreeAugment {
  int solarise_threshold = 128;
  int blur_kernel = 0;  ///< side of torchvision's Gaussian kernel; 0: Pillow's box blurs, of that radius
  double blur_low = 0.1, blur_high = 2.0;  ///< sigma or radius, in pixels
  ColourJitter jitter{.brightness = 0.3, .contrast = 0.3, .saturation = 0.3};
};

/// DeiT III's. Source: facebookresearch/deit, augment.py; the jitter of 0.3 is that of its recipe.
constexpr ThreeAugment kDeitThreeAugment{};

/// The MSF release's. Source: tk1980/MSFtransformer at ce23d1f, presets.py, policy "three".
constexpr ThreeAugment kMsfThreeAugment{.blur_kernel = 11};

/// Throws: as gaussian_blur, for an image too small for the kernel.
void three_augment(Image& image, const ThreeAugment& options, RandomStream& random);

}  // namespace abl::trainer
