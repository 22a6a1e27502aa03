// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/colour.h"

#include "worker/trainer/augmentation/blend.h"
#include "worker/trainer/augmentation/byte_table.h"
#include "worker/trainer/augmentation/luma.h"

namespace abl::trainer {
namespace {

/// `grey`: three bytes for each pixel.
void to_grey(const std::uint8_t* pixels, std::uint8_t* grey, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 3) grey[i] = grey[i + 1] = grey[i + 2] = luma(pixels + i);
}

void blend_from(Image& image, std::uint8_t plain, float factor) {
  look_up(image, byte_table([&](int v) { return blend(plain, static_cast<std::uint8_t>(v), factor); }));
}

}  // namespace

void brightness(Image& image, float factor) { blend_from(image, 0, factor); }

void contrast(Image& image, float factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) sum += luma(&image.pixels[i]);
  const double mean = static_cast<double>(sum) / static_cast<double>(image.pixels.size() / 3);
  blend_from(image, static_cast<std::uint8_t>(mean + 0.5), factor);
}

void saturation(Image& image, float factor) {
  std::vector<std::uint8_t> grey(image.row_bytes());
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    to_grey(row, grey.data(), grey.size());
    blend(grey.data(), row, factor, row, grey.size());
  }
}

void grayscale(Image& image) { to_grey(image.pixels.data(), image.pixels.data(), image.pixels.size()); }

}  // namespace abl::trainer
