// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "images/image.h"
#include "images/random.h"

namespace abl::images {

/// Gamma(shape, 1), shape > 0: rejection from the cube of a shifted normal; below 1 a draw of shape + 1 times
/// U^(1/shape). Exact. Source: Marsaglia and Tsang, A simple method for generating gamma variables (2000).
double gamma(RandomStream& random, double shape);

/// Beta(a, b), a and b > 0, in [0, 1]. Exact: Jöhnk's method where both are at most 1 (its acceptance is high
/// there, and small parameters do not underflow), otherwise the ratio of two gamma draws.
double beta(RandomStream& random, double a, double b);

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

/// Random erasing with one rectangle of noise, timm's mode "pixel". Source: timm 1.0.31,
/// data/random_erasing.py.
struct RandomErasing {
  double probability = 0.25;
  double area_low = 0.02, area_high = 1.0 / 3;       ///< as parts of the image's
  double aspect_low = 0.3, aspect_high = 1.0 / 0.3;  ///< height over width
};

/// What to erase once the image is normalised: each value of the rectangle becomes a standard normal draw, of
/// a stream seeded with `noise_seed`.
struct Erasure {
  Rectangle rectangle;  ///< smaller than the image; without area, sometimes, in an image of a few pixels
  std::uint64_t noise_seed = 0;
};

/// Nothing when the image stays whole: by chance, or after ten rectangles that did not fit.
std::optional<Erasure> draw_erasure(int width, int height, const RandomErasing& options,
                                    RandomStream& random);

}  // namespace abl::images
