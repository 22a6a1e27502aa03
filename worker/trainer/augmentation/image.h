// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace abl::trainer {

/// Pixels as bytes, red, green, blue for each pixel, rows from the top. At least one pixel, where an
/// operation gets it.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height, width, 3]

  std::size_t row_bytes() const { return std::size_t{3} * static_cast<std::size_t>(width); }
  const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
  std::uint8_t* row(int y) { return pixels.data() + static_cast<std::size_t>(y) * row_bytes(); }
};

/// An image whose pixels are all black.
inline Image black(int width, int height) {
  return {width, height, std::vector<std::uint8_t>(std::size_t{3} * width * height)};
}

/// Red, green, blue.
using Colour = std::array<std::uint8_t, 3>;

/// Three bytes. A fixed memcpy: std::copy_n is a call here, which costs more than what it does.
inline void copy_pixel(const std::uint8_t* from, std::uint8_t* to) { std::memcpy(to, from, 3); }

/// Pixels left … left+width-1 of the rows top … top+height-1.
struct Rectangle {
  int left = 0, top = 0, width = 0, height = 0;
  bool operator==(const Rectangle&) const = default;
};

/// An image of one colour.
inline Image filled(int width, int height, const Colour& colour) {
  Image image = black(width, height);
  if (colour == Colour{} || image.pixels.empty()) return image;
  for (std::size_t i = 0; i < image.row_bytes(); i += 3) copy_pixel(colour.data(), &image.pixels[i]);
  for (int y = 1; y < height; ++y) std::memcpy(image.row(y), image.row(0), image.row_bytes());
  return image;
}

}  // namespace abl::trainer
