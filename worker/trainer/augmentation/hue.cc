// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "worker/trainer/augmentation/byte_table.h"
#include "worker/trainer/augmentation/colour.h"

namespace abl::trainer {
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

}  // namespace abl::trainer
