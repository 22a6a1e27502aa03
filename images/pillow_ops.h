// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/image.h"

namespace abl::images {

// Each channel by its own histogram. Source: Pillow 13.0.0, ImageOps.

/// Spreads each channel linearly over 0 … 255; a channel of one value stays.
void auto_contrast(Image& image);

/// Makes the histogram of each channel flat, as far as a table of bytes can; a channel of one value stays,
/// and one of fewer than 255 pixels beside its brightest.
void equalise(Image& image);

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

/// Three box blurs for each direction, of which the width, not a whole number, is such that they have the
/// variance radius². Edges are repeated. Radius 0 changes nothing.
/// Source: Pillow 13.0.0, ImageFilter.GaussianBlur, equal to the byte; the method is that of Gwosdek et al.,
/// Theoretical foundations of Gaussian convolution by extended box filtering (SSVM 2011).
Image box_gaussian_blur(const Image& image, double radius);

}  // namespace abl::images
