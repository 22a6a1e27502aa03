// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

// Each byte by itself. Source: Pillow 13.0.0, ImageOps; solarise_add: timm 1.0.31, data/auto_augment.py.

/// v -> 255 - v.
void invert(Image& image);

/// v -> 255 - v from `threshold` on; 256 changes nothing, 0 inverts.
void solarise(Image& image, int threshold = 128);

/// v -> min(255, v + add) below `threshold`. `add` >= 0.
void solarise_add(Image& image, int add, int threshold = 128);

/// Keeps the upper `bits` bits of each byte: 8 and more change nothing, 0 and less is black. Pillow's formula
/// gives that too, but 13.0.0 refuses to; timm's RandAugment asks for it.
void posterise(Image& image, int bits);

}  // namespace abl::trainer
