// SPDX-License-Identifier: Apache-2.0
#include "images/masks/mask.h"

#include <algorithm>

namespace abl::images {
namespace {

struct Piece {
  int top = 0, bottom = 0;
};

/// The pieces of each column.
class Columns {
 public:
  explicit Columns(const Mask& mask) : first_(static_cast<std::size_t>(mask.width) + 1) {
    for_each_piece(mask, [&](int column, int top, int bottom) {
      pieces_.push_back({top, bottom});
      ++first_[static_cast<std::size_t>(column) + 1];
    });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  }
  std::span<const Piece> of(int column) const {
    const auto i = static_cast<std::size_t>(column);
    return std::span{pieces_}.subspan(first_[i], first_[i + 1] - first_[i]);
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<std::size_t> first_;  ///< of each column's pieces
};

void write(MaskWriter& writer, int height, int column, int top, int bottom) {
  const auto start = static_cast<std::uint64_t>(height) * static_cast<std::uint64_t>(column);
  writer.set(start + static_cast<std::uint64_t>(top), start + static_cast<std::uint64_t>(bottom));
}

/// The first new pixel that shows the old pixel `old` or one after it.
int first_of(int old, int old_size, int new_size) {
  return static_cast<int>((static_cast<std::int64_t>(old) * new_size + old_size - 1) / old_size);
}

}  // namespace

Mask flipped(const Mask& mask) {
  const Columns columns{mask};
  MaskWriter writer{mask.width, mask.height};
  for (int x = 0; x < mask.width; ++x)
    for (const auto& [top, bottom] : columns.of(mask.width - 1 - x))
      write(writer, mask.height, x, top, bottom);
  return std::move(writer).finish();
}

Mask cropped(const Mask& mask, const Rectangle& region) {
  MaskWriter writer{region.width, region.height};
  for_each_piece(mask, [&](int column, int top, int bottom) {
    const int x = column - region.left;
    if (x < 0 || x >= region.width) return;
    const int from = std::max(0, top - region.top), to = std::min(region.height, bottom - region.top);
    if (from < to) write(writer, region.height, x, from, to);
  });
  return std::move(writer).finish();
}

Mask resized(const Mask& mask, int width, int height) {
  const Columns columns{mask};
  MaskWriter writer{width, height};
  for (int x = 0; x < width; ++x)
    for (const auto& [top, bottom] :
         columns.of(static_cast<int>(static_cast<std::int64_t>(x) * mask.width / width)))
      write(writer, height, x, first_of(top, mask.height, height), first_of(bottom, mask.height, height));
  return std::move(writer).finish();
}

}  // namespace abl::images
