// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"
#include "worker/trainer/augmentation/random.h"

namespace abl::trainer {

/// How far each may go: a factor of max(0, 1 - s) … 1 + s, for the hue a turn of -s … s, s <= 0.5. 0: left
/// out.
struct ColourJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
};

/// Each in turn, in a random order, with a uniform factor. Source: torchvision 0.29, ColorJitter. Draws: the
/// order, then the factors of those that are in.
void colour_jitter(Image& image, const ColourJitter& jitter, RandomStream& random);

}  // namespace abl::trainer
