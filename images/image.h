// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace abl::images {

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

/// What is to be seen of an image, and how many pixels of it are needed at least.
struct Wanted {
  Rectangle region;
  int width = 0, height = 0;  ///< the decoder may halve the region down to these; 0: at full scale
};

/// Told an image's dimensions, says what is wanted of it. Called once for each image, before it is decoded:
/// the place to draw a crop.
using ChooseRegion = std::function<Wanted(int width, int height)>;

/// An image as it is stored.
struct EncodedImage {
  enum class Coding : std::uint32_t { kJpeg = 0, kPixels = 1, kPng = 2, kWebp = 3 };
  Coding coding = Coding::kJpeg;
  std::string_view bytes;             ///< a file of that format, or pixels [height, width, 3]
  std::shared_ptr<const void> owner;  ///< what `bytes` lies in, unless that is the source itself
  int width = 0, height = 0;
  int label = 0;
};

/// A decoded part of an image: `image` holds it, with up to a pixel more at each side where a reduced scale
/// cuts through pixels.
struct DecodedRegion {
  Image image;
  Rectangle region;                                 ///< the part, in the pixels of the whole at full scale
  double left = 0, top = 0, width = 0, height = 0;  ///< the part, in `image`'s pixels; whole at full scale
  int label = 0;
};

/// Throws: Error{kInvalidArgument} for a region that is empty or reaches outside a picture of that size.
void expect_inside(const Rectangle& region, int width, int height);

}  // namespace abl::images
