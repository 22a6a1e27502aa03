// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "images/box.h"
#include "images/image.h"

namespace abl::images {

/// Which pixels of a picture belong to a thing, as COCO's run lengths: down the columns from the left, so
/// many pixels that do not, then so many that do, and so on. The first run may be of no pixel, no other is;
/// all of them are the whole picture. Equal masks have equal runs. Made by the functions below, which keep
/// that. Source: pycocotools 2.0.11, common/maskApi.
struct Mask {
  int width = 0, height = 0;
  std::vector<std::uint32_t> runs;

  bool operator==(const Mask&) const = default;
};

/// Sides of a picture that has a mask: at most so many pixels, so that all pixels can be counted in 32 bits.
inline constexpr int kLargestMaskSide = 32'768;

/// Puts a mask together from runs that are told from the first pixel to the last.
class MaskWriter {
 public:
  /// Throws: Error{kInvalidArgument} for a side below 0 or above kLargestMaskSide.
  MaskWriter(int width, int height);

  /// The next `count` pixels. Any number of calls may say the same. What is beyond the last pixel is left
  /// out.
  void add(bool set, std::uint64_t count);
  /// Pixels `begin` … `end`-1 are set; those before them that nobody spoke of are not. `begin`: not before
  /// the end of what was added.
  void set(std::uint64_t begin, std::uint64_t end);
  /// Whatever is left is not set.
  Mask finish() &&;

 private:
  Mask mask_;
  std::uint64_t at_ = 0, pixels_ = 0;
};

/// A mask from bytes. Shape: `pixels` [height, width], rows from the top; 0 is outside, anything else inside.
/// Throws: Error{kInvalidArgument} for another number of bytes.
Mask mask_of_pixels(std::span<const std::uint8_t> pixels, int width, int height);
/// The other way. Shape: [height, width], 0 or 1.
std::vector<std::uint8_t> pixels_of(const Mask& mask);

/// Every pixel of a rectangle that is cut at the picture's edges.
Mask filled_mask(int width, int height, int left, int top, int right, int bottom);

/// How many pixels are set.
std::uint64_t area(const Mask& mask);
/// The smallest box around the pixels that are set; of none {0, 0, 0, 0}.
Box bounds(const Mask& mask);

/// Left becomes right.
Mask flipped(const Mask& mask);
/// The part of `region`, which may reach outside: nothing is set there.
Mask cropped(const Mask& mask, const Rectangle& region);
/// To another size, without values in between: pixel (x, y) is the old one at (⌊x·old/new⌋, ⌊y·old/new⌋), as
/// PyTorch's and OpenCV's "nearest" take it, in whole numbers. The sides of both: at least 1.
Mask resized(const Mask& mask, int width, int height);

/// Calls `piece(column, top, bottom)` for every stretch top … bottom-1 of a column that is set, in order.
template <class Piece>
void for_each_piece(const Mask& mask, const Piece& piece) {
  std::uint64_t at = 0;
  const auto height = static_cast<std::uint64_t>(mask.height);
  for (std::size_t i = 0; i < mask.runs.size(); ++i) {
    const std::uint64_t end = at + mask.runs[i];
    while (i % 2 == 1 && at < end) {
      const std::uint64_t column = at / height, top = at % height;
      const std::uint64_t bottom = top + (end - at) < height ? top + (end - at) : height;
      piece(static_cast<int>(column), static_cast<int>(top), static_cast<int>(bottom));
      at += bottom - top;
    }
    at = end;
  }
}

}  // namespace abl::images
