// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/three_augment.h"

#include "worker/trainer/augmentation/colour.h"
#include "worker/trainer/augmentation/gaussian_blur.h"
#include "worker/trainer/augmentation/threshold.h"

namespace abl::trainer {

void three_augment(Image& image, const ThreeAugment& options, RandomStream& random) {
  switch (random.below(3)) {
    case 0:
      grayscale(image);
      break;
    case 1:
      solarise(image, options.solarise_threshold);
      break;
    default: {
      const double sigma = random.uniform(options.blur_low, options.blur_high);
      image = options.blur_kernel > 0 ? gaussian_blur(image, options.blur_kernel, sigma)
                                      : box_gaussian_blur(image, sigma);
    }
  }
  colour_jitter(image, options.jitter, random);
}

}  // namespace abl::trainer
