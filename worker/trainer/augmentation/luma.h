// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace abl::trainer {

/// 0.299 red + 0.587 green + 0.114 blue in 16 bits of fraction, rounded: Pillow's conversion to mode L.
inline std::uint8_t luma(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>((pixel[0] * 19595U + pixel[1] * 38470U + pixel[2] * 7471U + 0x8000U) >>
                                   16);
}

}  // namespace abl::trainer
