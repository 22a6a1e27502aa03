// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/augmentation/crop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "worker/trainer/augmentation/reflect.h"

namespace abl::trainer {
namespace {

/// Copies the columns left … left+out.width-1 of `image` that exist; row y of `out` is row top + y.
void copy_overlap(const Image& image, int left, int top, Image& out) {
  const int from = std::max(0, left), to = std::min(image.width, left + out.width);
  for (int y = 0; y < out.height && from < to; ++y)
    if (const int row = top + y; row >= 0 && row < image.height)
      std::memcpy(out.row(y) + std::ptrdiff_t{3} * (from - left), image.row(row) + std::ptrdiff_t{3} * from,
                  std::size_t{3} * (to - from));
}

}  // namespace

Image crop(const Image& image, int left, int top, int width, int height) {
  Image out = black(width, height);
  copy_overlap(image, left, top, out);
  return out;
}

Image pad(const Image& image, int left, int top, int right, int bottom, Colour fill) {
  Image out = filled(image.width + left + right, image.height + top + bottom, fill);
  copy_overlap(image, -left, -top, out);
  return out;
}

Image pad_reflected(const Image& image, int left, int top, int right, int bottom) {
  if (std::max(left, right) >= image.width || std::max(top, bottom) >= image.height)
    throw Error{
        Code::kInvalidArgument,
        fmt::format("pad: a reflected frame of {}, {}, {}, {} pixels (left, top, right, bottom) needs a "
                    "larger image than {}×{}",
                    left, top, right, bottom, image.width, image.height)};
  Image out = black(image.width + left + right, image.height + top + bottom);
  for (int y = 0; y < out.height; ++y) {
    const std::uint8_t* from = image.row(reflected(y - top, image.height));
    std::uint8_t* to = out.row(y);
    std::memcpy(to + std::ptrdiff_t{3} * left, from, image.row_bytes());
    for (int x = -left; x < 0; ++x)
      copy_pixel(from + std::ptrdiff_t{3} * reflected(x, image.width), to + std::ptrdiff_t{3} * (left + x));
    for (int x = image.width; x < image.width + right; ++x)
      copy_pixel(from + std::ptrdiff_t{3} * reflected(x, image.width), to + std::ptrdiff_t{3} * (left + x));
  }
  return out;
}

void flip(Image& image) {
  std::vector<std::uint8_t> mirrored(image.row_bytes() + 1);
  for (int y = 0; y < image.height; ++y) {
    std::uint8_t* row = image.row(y);
    std::memcpy(mirrored.data(), row, image.row_bytes());
    // four bytes at a time: the fourth belongs to the next pixel, which is written next
    const std::uint8_t* from = mirrored.data() + std::ptrdiff_t{3} * (image.width - 1);
    for (int x = 0; x + 1 < image.width; ++x)
      std::memcpy(row + std::ptrdiff_t{3} * x, from - std::ptrdiff_t{3} * x, 4);
    copy_pixel(mirrored.data(), row + std::ptrdiff_t{3} * (image.width - 1));
  }
}

}  // namespace abl::trainer
