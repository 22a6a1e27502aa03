// SPDX-License-Identifier: Apache-2.0
#include "images/mmsegmentation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace abl::images {
namespace {

constexpr int kHues = 180, kTriesOfCrop = 10;

/// Hue of 180, saturation, value.
using Hsv = std::array<int, 3>;

/// Source: OpenCV 4, imgproc/src/color_hsv.simd.hpp: divisions by tables of 12 bits.
Hsv hsv_of(const std::uint8_t* pixel) {
  constexpr int kBits = 12, kHalf = 1 << (kBits - 1);
  const int red = pixel[0], green = pixel[1], blue = pixel[2];
  const int value = std::max({red, green, blue}), range = value - std::min({red, green, blue});
  if (range == 0) return {0, 0, value};
  const auto reciprocal = [](int times, double of) {
    return static_cast<int>(std::nearbyint((times << kBits) / of));
  };
  const int saturation = (range * reciprocal(255, value) + kHalf) >> kBits;
  const int sector = value == red     ? green - blue
                     : value == green ? blue - red + 2 * range
                                      : red - green + 4 * range;
  const int hue = (sector * reciprocal(kHues, 6.0 * range) + kHalf) >> kBits;
  return {hue < 0 ? hue + kHues : hue, saturation, value};
}

void put_hsv(const Hsv& hsv, std::uint8_t* pixel) {
  const float value = static_cast<float>(hsv[2]) * (1.0F / 255),
              saturation = static_cast<float>(hsv[1]) * (1.0F / 255);
  const float turned = static_cast<float>(hsv[0]) * (6.0F / kHues);
  const int sector = static_cast<int>(turned) % 6;
  const float within = turned - std::floor(turned);
  const std::array<float, 4> levels{value, value * (1 - saturation), value * (1 - saturation * within),
                                    value * (1 - saturation * (1 - within))};
  constexpr std::array<std::array<std::size_t, 3>, 6> kLevels{
      {{0, 3, 1}, {2, 0, 1}, {1, 0, 3}, {1, 2, 0}, {3, 1, 0}, {0, 1, 2}}};  // of red, green, blue
  for (std::size_t c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(std::clamp(
        std::nearbyint(levels[kLevels[static_cast<std::size_t>(sector)][c]] * 255.0F), 0.0F, 255.0F));
}

template <class Change>
void by_hsv(Image& image, const Change& change) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    Hsv hsv = hsv_of(&image.pixels[i]);
    change(hsv);
    put_hsv(hsv, &image.pixels[i]);
  }
}

int scaled_byte(int value, double scale, double offset) {
  const float changed = static_cast<float>(value) * static_cast<float>(scale) + static_cast<float>(offset);
  return static_cast<int>(std::clamp(changed, 0.0F, 255.0F));
}

}  // namespace

Size size_within(int width, int height, int longer, int shorter) {
  const double scale = std::min(static_cast<double>(longer) / std::max(width, height),
                                static_cast<double>(shorter) / std::min(width, height));
  const auto scaled = [&](int side) { return std::max(1, static_cast<int>(side * scale + 0.5)); };
  return {scaled(width), scaled(height)};
}

Annotated random_ratio(const Annotated& picture, const RandomRatio& options, RandomStream& random) {
  const double ratio = random.uniform(options.low, options.high);
  const auto [width, height] =
      size_within(picture.image.width, picture.image.height, static_cast<int>(options.longer * ratio),
                  static_cast<int>(options.shorter * ratio));
  return resized(picture, width, height);
}

namespace {

bool is_mixed(const LabelMap& labels, const Rectangle& part, double most) {
  std::array<std::int64_t, 256> pixels{};
  for (int y = part.top; y < part.top + part.height; ++y)
    for (int x = part.left; x < part.left + part.width; ++x) ++pixels[labels.row(y)[x]];
  pixels[LabelMap::kIgnored] = 0;
  std::int64_t all = 0;
  for (const auto count : pixels) all += count;
  const auto largest = std::ranges::max(pixels);
  return largest < all && static_cast<double>(largest) / static_cast<double>(all) < most;
}

}  // namespace

Rectangle draw_mixed_crop(const LabelMap& labels, int width, int height, double most, RandomStream& random) {
  Rectangle part{.width = std::min(width, labels.width), .height = std::min(height, labels.height)};
  const auto place = [&](int whole, int size) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(whole - size + 1)));
  };
  for (int tried = 0; tried <= kTriesOfCrop; ++tried) {
    part.top = place(labels.height, part.height);
    part.left = place(labels.width, part.width);
    if (most >= 1 || (tried < kTriesOfCrop && is_mixed(labels, part, most))) break;
  }
  return part;
}

void scale_bytes(Image& image, double scale, double offset) {
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(scaled_byte(value, scale, offset));
}

void scale_saturation(Image& image, double factor) {
  by_hsv(image, [&](Hsv& hsv) { hsv[1] = scaled_byte(hsv[1], factor, 0); });
}

void turn_hue(Image& image, int turn) {
  by_hsv(image, [&](Hsv& hsv) { hsv[0] = ((hsv[0] + turn) % kHues + kHues) % kHues; });
}

void distort(Image& image, const PhotometricDistortion& options, RandomStream& random) {
  const auto is_made = [&] { return random.below(2) == 1; };
  const auto change_contrast = [&] {
    if (is_made()) scale_bytes(image, random.uniform(options.contrast_low, options.contrast_high), 0);
  };
  if (is_made()) scale_bytes(image, 1, random.uniform(-options.brightness, options.brightness));
  const bool contrast_first = random.below(2) == 1;
  if (contrast_first) change_contrast();
  if (is_made()) scale_saturation(image, random.uniform(options.saturation_low, options.saturation_high));
  if (options.hue > 0 && is_made())
    turn_hue(image,
             static_cast<int>(random.below(static_cast<std::uint64_t>(2 * options.hue))) - options.hue);
  if (!contrast_first) change_contrast();
}

Annotated segmentation_view(const Annotated& picture, const SegmentationRecipe& recipe,
                            RandomStream& random) {
  Annotated view = random_ratio(picture, recipe.ratio, random);
  view = cropped(view, draw_mixed_crop(view.labels, recipe.width, recipe.height, recipe.most, random));
  if (random.uniform() < recipe.flip) flip(view);
  if (recipe.distorts) distort(view.image, recipe.distortion, random);
  return padded(view, recipe.width, recipe.height, recipe.fill);
}

}  // namespace abl::images
