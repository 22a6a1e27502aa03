// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "images/jpeg_write.h"
#include "tests/temporary_folder.h"

namespace abl::images {

/// A JPEG of one colour.
inline std::string jpeg_of(int width, int height, std::array<std::uint8_t, 3> colour) {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    image.pixels.insert(image.pixels.end(), colour.begin(), colour.end());
  return encode_jpeg(image, 95, Chroma::kFull);
}

inline void write(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream{file, std::ios::binary} << bytes;
}

}  // namespace abl::images
