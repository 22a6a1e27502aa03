// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.h"

#include <fmt/format.h>
#include <libdeflate.h>

namespace abl {

// libdeflate's takes the processor's carry-less products: several gigabytes a second, ten times zlib's
std::uint32_t crc32(std::string_view bytes, std::uint32_t before) {
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

std::string crc32_hex(std::string_view bytes) { return fmt::format("{:08x}", crc32(bytes)); }

}  // namespace abl
