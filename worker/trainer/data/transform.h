// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "config/trial_config.h"
#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// Training view of an image: the recipe's crop, then a horizontal flip; image_size × image_size.
Image augment(const Image& image, const config::RecipeConfig& recipe, int image_size, RandomStream& random);

/// Evaluation view: shorter side to `resize` (bilinear, antialiased), then the centre.
Image centre(const Image& image, int resize, int image_size);

/// Bilinear with antialiasing, as Pillow does it.
Image resize(const Image& image, int width, int height);

/// Names the parts of a recipe that this trainer does not do. Throws: Error{kUnimplemented}.
void check_supported(const config::RecipeConfig& recipe);

}  // namespace abl::trainer
