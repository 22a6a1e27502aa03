// SPDX-License-Identifier: Apache-2.0
#include "images/png_write.h"

#include <png.h>

#include <cstring>

#include "base/error.h"

namespace abl::images {
namespace {

std::string encode(int width, int height, png_uint_32 format, const std::vector<std::uint8_t>& pixels) {
  png_image png;
  std::memset(&png, 0, sizeof png);
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(width), png.height = static_cast<png_uint_32>(height);
  png.format = format;
  const auto write = [&](void* to, png_alloc_size_t& bytes) {
    if (!png_image_write_to_memory(&png, to, &bytes, /*convert_to_8_bit=*/0, pixels.data(),
                                   /*row_stride=*/0, /*colormap=*/nullptr))
      throw Error{Code::kInvalidArgument, std::string{"cannot write a PNG: "} + png.message};
  };
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  write(file.data(), bytes);
  file.resize(bytes);
  return file;
}

}  // namespace

std::string encode_png(const Image& image) {
  return encode(image.width, image.height, PNG_FORMAT_RGB, image.pixels);
}

std::string encode_png(const LabelMap& labels) {
  return encode(labels.width, labels.height, PNG_FORMAT_GRAY, labels.labels);
}

}  // namespace abl::images
