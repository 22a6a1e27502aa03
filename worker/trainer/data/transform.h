// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "config/trial_config.h"
#include "worker/trainer/augmentation/rand_augment.h"
#include "worker/trainer/augmentation/random.h"
#include "worker/trainer/augmentation/random_erasing.h"
#include "worker/trainer/data/framing.h"
#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// How an image is shown to a model in training.
struct View {
  Image image;                     ///< image_size × image_size
  std::optional<Erasure> erasure;  ///< what noise is to replace once the image is normalised
};

/// One image as the model will see it.
struct Prepared {
  View view;
  int label = 0;
};

/// Makes training views by a recipe, in the order of timm and of the MSF release: crop, flip, RandAugment,
/// appearance, colour jitter, erasing. The crop is drawn from the image's dimensions before the image is
/// decoded, and no more of it is decoded than that. Thread: any number.
class Augmentation {
 public:
  /// Throws: Error{kInvalidArgument, kUnimplemented} for a RandAugment that is none.
  Augmentation(const config::RecipeConfig& recipe, const config::DataConfig& data);
  /// Nothing when the image is to be skipped.
  std::optional<Prepared> operator()(const ImageSource& images, std::uint32_t index,
                                     RandomStream& random) const;

 private:
  Framing draw_framing(int width, int height, RandomStream& random) const;
  void change(View& view, RandomStream& random) const;

  const config::RecipeConfig recipe_;
  const int image_size_;
  const bool reduced_;
  const Interpolation interpolation_;
  std::optional<RandAugment> rand_augment_;
};

/// The view for evaluation: the shorter side to image_size / `recipe.eval_crop_ratio`, then the centre;
/// always from full scale. Nothing when the image is to be skipped.
std::optional<Prepared> centre_of(const ImageSource& images, std::uint32_t index,
                                  const config::RecipeConfig& recipe, int image_size);

}  // namespace abl::trainer
