// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "config/trial_config.h"
#include "data/image_source.h"
#include "images/pillow_transform.h"
#include "images/random.h"
#include "images/timm_mixing.h"
#include "images/timm_rand_augment.h"

namespace abl::data {

/// Which part of an image is shown, and how large: the crop is scaled to `width` × `height`, and of that
/// the square of `size` pixels from (left, top) on is what is seen.
struct Framing {
  images::Rectangle crop;
  int width = 0, height = 0;
  int left = 0, top = 0, size = 0;
  images::Interpolation interpolation = images::Interpolation::kBilinear;

  /// What must be decoded for it. `reduced`: a scale of 1/2, 1/4 or 1/8 will do where that is large enough.
  images::Wanted wanted(bool reduced) const;
  /// What is shown, from what was decoded. At full scale it is, to the byte, what Pillow makes of the whole
  /// image: cropped, scaled, cut.
  images::Image of(const images::DecodedRegion& decoded) const;
};

/// The shorter side scaled to `resize` pixels, then the centre. `size`: at most `resize`.
/// Source: torchvision 0.29, Resize and CenterCrop.
Framing frame_centre(int width, int height, int resize, int size, images::Interpolation interpolation);

/// One image as the model will see it.
struct Prepared {
  images::Image image;                     ///< image_size × image_size
  std::optional<images::Erasure> erasure;  ///< what noise is to replace once the image is normalised
  int label = 0;
};

/// Makes training images by a recipe, in the order of timm and of the MSF release: crop, flip, RandAugment
/// or TrivialAugment, appearance, colour jitter, erasing. The crop is drawn from the image's dimensions
/// before the image is decoded, and no more of it is decoded than that. Thread: any number.
class Augmentation {
 public:
  /// Throws: Error{kInvalidArgument, kUnimplemented} for a RandAugment that is none.
  Augmentation(const config::RecipeConfig& recipe, const config::DataConfig& data);
  /// Nothing when the image is to be skipped.
  std::optional<Prepared> operator()(const ImageSource& images, std::uint32_t index,
                                     images::RandomStream& random) const;

 private:
  Framing draw_framing(int width, int height, images::RandomStream& random) const;
  void change(Prepared& prepared, images::RandomStream& random) const;

  const config::RecipeConfig recipe_;
  const int image_size_;
  const bool reduced_;
  const images::Interpolation interpolation_;
  std::optional<images::RandAugment> rand_augment_;
};

/// The image for evaluation: the shorter side to image_size / `recipe.eval_crop_ratio`, then the centre;
/// always from full scale. Nothing when the image is to be skipped.
std::optional<Prepared> centre_of(const ImageSource& images, std::uint32_t index,
                                  const config::RecipeConfig& recipe, int image_size);

}  // namespace abl::data
