// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// MixUp and CutMix, one draw for a whole batch. Source: timm 1.0.31, data/mixup.py, Mixup with mode "batch"
/// and corrected lambda.
struct Mixing {
  double mixup_alpha = 0.8, cutmix_alpha = 1.0;  ///< of Beta(α, α); 0: never that one
  double probability = 1;                        ///< that the batch is mixed at all
  double switch_probability = 0.5;               ///< that it is CutMix, where both may be
};

/// What happens to a batch: image i keeps the share `lambda` and gets the rest of its partner, in timm the
/// image B-1-i; so do the labels.
struct Mix {
  enum class Kind { kNone, kMixUp, kCutMix };
  Kind kind = Kind::kNone;
  double lambda = 1;
  Rectangle box;  ///< CutMix: the part of each image that is its partner's
};

/// `width` and `height` of the batch's images.
/// Throws: Error{kInvalidArgument} when neither alpha is above 0.
Mix draw_mix(int width, int height, const Mixing& options, RandomStream& random);

/// A box about the pixel (x, y) with the aspect of the image and 1 - lambda of its area, cut off at the
/// edges.
Rectangle cut_box(int width, int height, double lambda, int x, int y);

}  // namespace abl::trainer
