// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

// A factor says how far to go from a plain image, 0, by way of the image itself, 1, and on. Single precision,
// as there. Source: Pillow 13.0.0, ImageEnhance, which torchvision's adjust_* and timm call.

/// From black.
void brightness(Image& image, float factor);

/// From a grey image of the mean luma, rounded.
void contrast(Image& image, float factor);

/// From the image in grey; Pillow's "Color".
void saturation(Image& image, float factor);

/// Luma in all three channels: torchvision's Grayscale(3).
void grayscale(Image& image);

/// Turns the hue by `turn` of a full turn, -0.5 … 0.5, by way of Pillow's HSV of bytes: 0 changes colours
/// too, as they are rounded there and back. Source: torchvision 0.29, adjust_hue on a PIL image.
void hue(Image& image, double turn);

}  // namespace abl::trainer
