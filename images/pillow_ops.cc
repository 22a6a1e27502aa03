// SPDX-License-Identifier: Apache-2.0
#include "images/pillow_ops.h"

#include <algorithm>
#include <cmath>

#include "images/byte_table.h"
#include "images/image.h"

namespace abl::images {
namespace {

constexpr int kPasses = 3;

/// Half the width of a box, less the middle pixel, such that `kPasses` boxes have the variance radius²:
/// equations 7, 11 and 14 of Gwosdek et al. In single precision, as Pillow has it.
float box_radius(float radius) {
  const float variance = radius * radius / kPasses;
  const auto width = static_cast<float>(std::sqrt(12.0 * variance + 1.0));
  const auto whole = static_cast<float>(std::floor((width - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + part;
}

/// A box of 2·whole + 1 pixels that count fully and one more at each end that counts in part; weights sum to
/// 2²⁴.
struct BlurWindow {
  explicit BlurWindow(float radius)
      : whole{static_cast<int>(radius)},
        inner{static_cast<std::uint32_t>(static_cast<float>(1U << 24) / (radius * 2 + 1))},
        outer{((1U << 24) - static_cast<std::uint32_t>(whole * 2 + 1) * inner) / 2} {}
  int whole;
  std::uint32_t inner, outer;
};

/// One box along each column of `from`. A sum over the column's window moves down with it.
void blur_columns(const Image& from, const BlurWindow& box, std::vector<std::uint32_t>& sums, Image& out) {
  const std::size_t bytes = from.row_bytes();
  const auto row = [&](int y) { return from.row(std::clamp(y, 0, from.height - 1)); };
  std::fill_n(sums.begin(), bytes, 0U);
  for (int y = -1 - box.whole; y < box.whole; ++y) {  // the window of the row above the first
    const std::uint8_t* entering = row(y);
    for (std::size_t i = 0; i < bytes; ++i) sums[i] += entering[i];
  }
  for (int y = 0; y < from.height; ++y) {
    const std::uint8_t *leaving = row(y - box.whole - 1), *entering = row(y + box.whole),
                       *next = row(y + box.whole + 1);
    std::uint8_t* to = out.row(y);
    for (std::size_t i = 0; i < bytes; ++i) {
      sums[i] += static_cast<std::uint32_t>(entering[i] - leaving[i]);
      const auto ends = static_cast<std::uint32_t>(leaving[i] + next[i]);
      to[i] = static_cast<std::uint8_t>((sums[i] * box.inner + ends * box.outer + (1U << 23)) >> 24);
    }
  }
}

/// Rows become columns: [height, width, 3] -> [width, height, 3].
void transpose(const Image& from, Image& out) {
  out.width = from.height, out.height = from.width;
  constexpr int kTile = 16;  // so that what is read and what is written stay in the cache
  for (int top = 0; top < from.height; top += kTile)
    for (int x = 0; x < from.width; ++x) {
      std::uint8_t* to = out.row(x) + std::ptrdiff_t{3} * top;
      for (int y = top; y < std::min(top + kTile, from.height); ++y, to += 3)
        copy_pixel(from.row(y) + std::ptrdiff_t{3} * x, to);
    }
}

}  // namespace

Image box_gaussian_blur(const Image& image, double radius) {
  const BlurWindow box{box_radius(static_cast<float>(radius))};
  if (radius == 0) return image;
  Image one = black(image.height, image.width), other = one;
  std::vector<std::uint32_t> sums(std::size_t{3} * std::max(image.width, image.height));
  transpose(image, one);
  const auto blur = [&] {  // an odd number of passes: the result is in `other`
    blur_columns(one, box, sums, other);
    blur_columns(other, box, sums, one);
    blur_columns(one, box, sums, other);
  };
  static_assert(kPasses == 3);
  blur();  // along the rows first: each pass rounds to bytes
  transpose(other, one);
  other.width = one.width, other.height = one.height;
  blur();
  return other;
}

namespace {

using Histogram = std::array<std::uint32_t, 256>;

std::array<Histogram, 3> count(const Image& image) {
  std::array<Histogram, 3> counts{};
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    for (std::size_t c = 0; c < 3; ++c) ++counts[c][image.pixels[i + c]];
  return counts;
}

/// The lowest and the highest value that occur.
struct Ends {
  int low, high;
};
Ends ends(const Histogram& counts) {
  Ends found{0, 255};
  while (found.low < 255 && counts[found.low] == 0) ++found.low;
  while (found.high > 0 && counts[found.high] == 0) --found.high;
  return found;
}

int unchanged(int value) { return value; }

ByteTable stretched(const Histogram& counts) {
  const auto [low, high] = ends(counts);
  if (high <= low) return byte_table(unchanged);
  // scale and offset apart, in double: (v - low)·scale would be cut off to another byte now and then
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return byte_table([&](int value) { return std::clamp(static_cast<int>(value * scale + offset), 0, 255); });
}

ByteTable flattened(const Histogram& counts) {
  const auto [low, high] = ends(counts);
  std::uint32_t below_brightest = 0;
  for (int value = low; value < high; ++value) below_brightest += counts[value];
  const std::uint32_t step = below_brightest / 255;  // pixels for each value of the output
  if (step == 0) return byte_table(unchanged);
  std::uint32_t before = step / 2;
  return byte_table([&](int value) {
    const std::uint32_t flat = before / step;
    before += counts[value];
    return std::min(255U, flat);
  });
}

template <class Function>
void map_channels(Image& image, Function table_of) {
  const auto counts = count(image);
  look_up(image, std::array<ByteTable, 3>{table_of(counts[0]), table_of(counts[1]), table_of(counts[2])});
}

}  // namespace

void auto_contrast(Image& image) { map_channels(image, stretched); }
void equalise(Image& image) { map_channels(image, flattened); }

// No tables here: the compiler makes vector code of these loops, which it cannot of a look-up.

void invert(Image& image) {
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(255 - value);
}

void solarise(Image& image, int threshold) {
  if (threshold > 255) return;
  const auto from = static_cast<std::uint8_t>(std::max(0, threshold));
  for (auto& value : image.pixels) value = static_cast<std::uint8_t>(value < from ? value : 255 - value);
}

void solarise_add(Image& image, int add, int threshold) {
  const auto plus = static_cast<std::uint8_t>(std::min(255, add));
  for (auto& value : image.pixels) {
    const auto sum = static_cast<std::uint8_t>(value + plus);
    const auto raised = static_cast<std::uint8_t>(sum < value ? 255 : sum);
    value = value < threshold ? raised : value;
  }
}

void posterise(Image& image, int bits) {
  if (bits >= 8) return;
  const auto kept = static_cast<std::uint8_t>(0xFF << (8 - std::max(0, bits)));
  for (auto& value : image.pixels) value &= kept;
}

}  // namespace abl::images
