// SPDX-License-Identifier: Apache-2.0
#include "images/pillow_enhance.h"

#include <algorithm>

#include "images/byte_table.h"

namespace abl::images {
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

namespace {

// Which steps are in single and which in double precision decides the last bit of a byte: all as
// Pillow 13.0.0 rounds them (its conversions between RGB and HSV).

/// In sixths of a turn from red, -1 … 5. `chroma` > 0: highest minus lowest channel.
float sixths(int red, int green, int blue, int highest, float chroma) {
  const auto below = [&](int channel) { return static_cast<float>(highest - channel) / chroma; };
  if (red == highest) return below(blue) - below(green);
  if (green == highest) return static_cast<float>(2.0 + below(red) - below(blue));
  return static_cast<float>(4.0 + below(green) - below(red));
}

std::uint8_t hue_byte(float from_red) {
  const double turns = from_red / 6.0 + 1.0;  // of 5/6 … 11/6, so that what is below red is positive
  const auto hue = static_cast<float>(turns >= 1 ? turns - 1 : turns);
  return static_cast<std::uint8_t>(hue * 255.0);
}

/// A byte of hue as one of six sectors, and the part of that sector.
struct Sector {
  int number;
  float part;
};
std::array<Sector, 256> sectors() {
  std::array<Sector, 256> all;
  for (int hue = 0; hue < 256; ++hue) {
    const double place = static_cast<float>(hue) * 6.0 / 255.0;
    const int number = static_cast<int>(place);
    all[hue] = {number % 6, static_cast<float>(place - static_cast<float>(number))};
  }
  return all;
}

std::uint8_t to_byte(double value) { return static_cast<std::uint8_t>(static_cast<int>(value + 0.5)); }

/// From hue, saturation and the highest channel, which stays.
void set_colour(Sector hue, std::uint8_t saturation, std::uint8_t value, std::uint8_t* pixel) {
  const auto depth = static_cast<float>(saturation / 255.0);
  const auto low = to_byte(value * (1.0 - depth));
  // the middle channel falls in the odd sectors and rises in the even ones
  const auto middle = hue.number % 2 == 1 ? to_byte(value * (1.0 - depth * hue.part))
                                          : to_byte(value * (1.0 - depth * (1.0 - hue.part)));
  constexpr int kHighest[6] = {0, 1, 1, 2, 2, 0}, kMiddle[6] = {1, 0, 2, 1, 0, 2};
  const int highest = kHighest[hue.number], second = kMiddle[hue.number];
  pixel[highest] = value, pixel[second] = middle, pixel[3 - highest - second] = low;
}

}  // namespace

void hue(Image& image, double turn) {
  static const auto kSectors = sectors();
  const auto shift = static_cast<std::uint8_t>(static_cast<int>(turn * 255));  // wraps around
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* pixel = &image.pixels[i];
    const int red = pixel[0], green = pixel[1], blue = pixel[2];
    const int highest = std::max({red, green, blue}), lowest = std::min({red, green, blue});
    if (highest == lowest) continue;  // grey has no hue
    const auto chroma = static_cast<float>(highest - lowest);
    const auto saturation = static_cast<std::uint8_t>(chroma / static_cast<float>(highest) * 255.0);
    const std::uint8_t turned = hue_byte(sixths(red, green, blue, highest, chroma)) + shift;
    if (saturation == 0)  // less than a 255th of the value
      pixel[0] = pixel[1] = pixel[2] = static_cast<std::uint8_t>(highest);
    else
      set_colour(kSectors[turned], saturation, static_cast<std::uint8_t>(highest), pixel);
  }
}

void sharpness(Image& image, float factor) {
  if (image.width < 3 || image.height < 3) return;
  const std::size_t bytes = image.row_bytes();
  std::vector<std::uint16_t> columns(bytes);
  std::vector<std::uint8_t> above(image.row(0), image.row(0) + bytes), here(bytes), smooth(bytes);
  for (int y = 1; y + 1 < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    const std::uint8_t* below = image.row(y + 1);
    here.assign(row, row + bytes);  // the row is overwritten, and the next one needs it
    for (std::size_t i = 0; i < bytes; ++i)
      columns[i] = static_cast<std::uint16_t>(above[i] + here[i] + below[i]);
    for (std::size_t i = 3; i + 3 < bytes; ++i) {
      // at most 13·255. Pillow adds 1/2 to a sum of 13ths in floating point, which never comes near a whole
      // number
      const auto sum = static_cast<std::uint16_t>(columns[i - 3] + columns[i] + columns[i + 3] + 4 * here[i]);
      smooth[i] = static_cast<std::uint8_t>(static_cast<std::uint16_t>(sum + 6) / 13);
    }
    blend(smooth.data() + 3, here.data() + 3, factor, row + 3, bytes - 6);
    above.swap(here);
  }
}

}  // namespace abl::images
