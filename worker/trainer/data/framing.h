// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/affine.h"
#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// Which part of an image a view shows, and how large: the crop is scaled to `width` × `height`, and of that
/// the square of `size` pixels from (left, top) on is what is seen.
struct Framing {
  Rectangle crop;
  int width = 0, height = 0;
  int left = 0, top = 0, size = 0;
  Interpolation interpolation = Interpolation::kBilinear;

  /// What must be decoded for it. `reduced`: a scale of 1/2, 1/4 or 1/8 will do where that is large enough.
  Wanted wanted(bool reduced) const;
  /// The view, from what was decoded. At full scale it is, to the byte, what Pillow makes of the whole image:
  /// cropped, scaled, cut.
  Image of(const RegionView& view) const;
};

/// The shorter side scaled to `resize` pixels, then the centre. `size`: at most `resize`.
/// Source: torchvision 0.29, Resize and CenterCrop.
Framing frame_centre(int width, int height, int resize, int size, Interpolation interpolation);

}  // namespace abl::trainer
