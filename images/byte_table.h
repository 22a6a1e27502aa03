// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "images/image.h"

namespace abl::images {

/// What becomes of each value of a byte.
using ByteTable = std::array<std::uint8_t, 256>;

template <class Function>
ByteTable byte_table(Function&& value_of) {
  ByteTable table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(value_of(i));
  return table;
}

inline void look_up(Image& image, const ByteTable& table) {
  for (auto& value : image.pixels) value = table[value];
}

/// One table for each of red, green, blue.
inline void look_up(Image& image, const std::array<ByteTable, 3>& tables) {
  for (std::size_t i = 0; i < image.pixels.size(); i += 3)
    for (std::size_t c = 0; c < 3; ++c) image.pixels[i + c] = tables[c][image.pixels[i + c]];
}

}  // namespace abl::images
