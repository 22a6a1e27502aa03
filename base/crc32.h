// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace abl {

/// CRC-32 as in zip, PNG and Python's zlib.crc32: finds every damage of up to 32 bits in a row, and any other
/// but for one in 4 billion. `before`: of the bytes that come first, where they come in pieces.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

/// Lower-case hexadecimal, 8 characters.
std::string crc32_hex(std::string_view bytes);

}  // namespace abl
