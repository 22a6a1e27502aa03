// SPDX-License-Identifier: Apache-2.0
#include "images/masks/mask.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::images {

MaskWriter::MaskWriter(int width, int height) {
  if (width < 0 || height < 0 || width > kLargestMaskSide || height > kLargestMaskSide)
    throw Error{Code::kInvalidArgument,
                fmt::format("mask size {}×{} is too large; expected at most {} pixels per side", width,
                            height, kLargestMaskSide)};
  mask_.width = width, mask_.height = height;
  pixels_ = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
}

void MaskWriter::add(bool set, std::uint64_t count) {
  count = std::min(count, pixels_ - at_);
  if (count == 0) return;
  auto& runs = mask_.runs;
  if (runs.empty()) runs.push_back(0);
  const bool last_is_set = runs.size() % 2 == 0;
  if (last_is_set != set) runs.push_back(0);
  runs.back() += static_cast<std::uint32_t>(count);
  at_ += count;
}

void MaskWriter::set(std::uint64_t begin, std::uint64_t end) {
  if (end <= begin) return;
  add(false, begin - std::min(begin, at_));
  add(true, end - begin);
}

Mask MaskWriter::finish() && {
  add(false, pixels_ - at_);
  return std::move(mask_);
}

Mask mask_of_pixels(std::span<const std::uint8_t> pixels, int width, int height) {
  MaskWriter writer{width, height};
  const auto rows = static_cast<std::size_t>(height), columns = static_cast<std::size_t>(width);
  if (pixels.size() != rows * columns)
    throw Error{Code::kInvalidArgument, fmt::format("{} bytes for a {}×{} mask; expected one per pixel",
                                                    pixels.size(), width, height)};
  for (std::size_t x = 0; x < columns; ++x)
    for (std::size_t y = 0; y < rows;) {
      const bool set = pixels[y * columns + x] != 0;
      const std::size_t begin = y;
      while (y < rows && (pixels[y * columns + x] != 0) == set) ++y;
      writer.add(set, y - begin);
    }
  return std::move(writer).finish();
}

std::vector<std::uint8_t> pixels_of(const Mask& mask) {
  const auto columns = static_cast<std::size_t>(mask.width);
  std::vector<std::uint8_t> pixels(columns * static_cast<std::size_t>(mask.height));
  for_each_piece(mask, [&](int column, int top, int bottom) {
    for (int y = top; y < bottom; ++y)
      pixels[static_cast<std::size_t>(y) * columns + static_cast<std::size_t>(column)] = 1;
  });
  return pixels;
}

Mask filled_mask(int width, int height, int left, int top, int right, int bottom) {
  MaskWriter writer{width, height};
  const std::int64_t first = std::max(0, top), last = std::min(height, bottom);
  for (std::int64_t x = std::max(0, left); x < std::min(width, right) && first < last; ++x)
    writer.set(static_cast<std::uint64_t>(x * height + first), static_cast<std::uint64_t>(x * height + last));
  return std::move(writer).finish();
}

std::uint64_t area(const Mask& mask) {
  std::uint64_t pixels = 0;
  for (std::size_t i = 1; i < mask.runs.size(); i += 2) pixels += mask.runs[i];
  return pixels;
}

Box bounds(const Mask& mask) {
  if (mask.runs.size() < 2) return {};
  const auto height = static_cast<std::uint64_t>(mask.height);
  std::uint64_t left = static_cast<std::uint64_t>(mask.width), right = 0, top = height, bottom = 0, at = 0;
  for (std::size_t i = 0; i < mask.runs.size(); at += mask.runs[i++]) {
    if (i % 2 == 0) continue;
    const std::uint64_t last = at + mask.runs[i] - 1;
    const std::uint64_t first_column = at / height, last_column = last / height;
    left = std::min(left, first_column), right = std::max(right, last_column + 1);
    if (first_column == last_column) {
      top = std::min(top, at % height), bottom = std::max(bottom, last % height + 1);
    } else {
      top = 0, bottom = height;  // it goes over a column's end
    }
  }
  return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right - left),
          static_cast<double>(bottom - top)};
}

}  // namespace abl::images
