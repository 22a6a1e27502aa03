// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "config/trial_config.h"
#include "worker/trainer/augmentation/affine.h"
#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/rand_augment.h"
#include "worker/trainer/augmentation/random.h"
#include "worker/trainer/augmentation/random_erasing.h"

namespace abl::trainer {

/// How an image is shown to a model in training.
struct View {
  Image image;                     ///< image_size × image_size
  std::optional<Erasure> erasure;  ///< what noise is to replace once the image is normalised
};

/// Makes training views by a recipe, in the order of timm and of the MSF release: crop, flip, RandAugment,
/// appearance, colour jitter, erasing. Thread: any number.
class Augmentation {
 public:
  /// Throws: Error{kInvalidArgument, kUnimplemented} for a RandAugment that is none.
  Augmentation(const config::RecipeConfig& recipe, int image_size);
  View operator()(const Image& image, RandomStream& random) const;

 private:
  Image crop_of(const Image& image, RandomStream& random) const;

  const config::RecipeConfig recipe_;
  const int image_size_;
  const Interpolation interpolation_;
  std::optional<RandAugment> rand_augment_;
};

/// Evaluation view: shorter side to `resize`, then the centre.
Image centre(const Image& image, int resize, int image_size, Interpolation interpolation);

/// With antialiasing, as Pillow does it. `interpolation`: bilinear or bicubic.
Image resize(const Image& image, int width, int height, Interpolation interpolation);

Interpolation interpolation_of(const config::RecipeConfig& recipe);

}  // namespace abl::trainer
