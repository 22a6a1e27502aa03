// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace abl::trainer {

/// from + factor·(to - from), cut to a byte: factor 0 gives `from`, 1 gives `to`, others go beyond.
/// Source: Pillow 13.0.0, Image.blend: single precision, cut off towards zero.
inline std::uint8_t blend(std::uint8_t from, std::uint8_t to, float factor) {
  const auto mixed = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(static_cast<int>(std::min(std::max(mixed, 0.0F), 255.0F)));
}

/// `blend` for each of `count` bytes.
inline void blend(const std::uint8_t* from, const std::uint8_t* to, float factor, std::uint8_t* out,
                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = blend(from[i], to[i], factor);
}

}  // namespace abl::trainer
