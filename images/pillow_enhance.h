// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "images/image.h"

namespace abl::images {

/// from + factor·(to - from), cut to a byte: factor 0 gives `from`, 1 gives `to`, others go beyond.
/// Source: Pillow 13.0.0, Image.blend: single precision, cut off towards zero.
inline std::uint8_t blend(std::uint8_t from, std::uint8_t to, float factor) {
  const auto mixed = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(static_cast<int>(std::min(std::max(mixed, 0.0F), 255.0F)));
}

/// `blend` for each of `count` bytes.
inline void blend(const std::uint8_t* from, const std::uint8_t* to, float factor, std::uint8_t* out,
                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = blend(from[i], to[i], factor);
}

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

/// 0.299 red + 0.587 green + 0.114 blue in 16 bits of fraction, rounded: Pillow's conversion to mode L.
inline std::uint8_t luma(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>((pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >>
                                   16);
}

/// From the smoothed image, factor 0, by way of the image itself, 1, to a sharpened one. Smoothed: each pixel
/// five times and its eight neighbours once, over 13; the outermost pixels stay, as do images of fewer than 3
/// rows or columns. Source: Pillow 13.0.0, ImageEnhance.Sharpness and ImageFilter.SMOOTH.
void sharpness(Image& image, float factor);

}  // namespace abl::images
