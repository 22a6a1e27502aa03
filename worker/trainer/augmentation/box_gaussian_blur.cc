// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "worker/trainer/augmentation/gaussian_blur.h"

namespace abl::trainer {
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
struct Box {
  explicit Box(float radius)
      : whole{static_cast<int>(radius)},
        inner{static_cast<std::uint32_t>(static_cast<float>(1U << 24) / (radius * 2 + 1))},
        outer{((1U << 24) - static_cast<std::uint32_t>(whole * 2 + 1) * inner) / 2} {}
  int whole;
  std::uint32_t inner, outer;
};

/// One box along each column of `from`. A sum over the column's window moves down with it.
void blur_columns(const Image& from, const Box& box, std::vector<std::uint32_t>& sums, Image& out) {
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
  const Box box{box_radius(static_cast<float>(radius))};
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

}  // namespace abl::trainer
