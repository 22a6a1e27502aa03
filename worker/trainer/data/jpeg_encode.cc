// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/jpeg_encode.h"

#include "base/error.h"
#include "worker/trainer/data/jpeg_errors.h"
#include "worker/trainer/data/jpeg_output.h"

namespace abl::trainer {
namespace {

struct Encoder {
  JpegErrors errors{};
  jpeg_compress_struct jpeg{};
  JpegOutput output;
  ~Encoder() { jpeg_destroy_compress(&jpeg); }
};

/// libjpeg's side of the border: see JpegErrors.
bool write(Encoder& encoder, const std::uint8_t* pixels, int width, int height, int quality, int factor) {
  auto& jpeg = encoder.jpeg;
  jpeg.err = encoder.errors.set_up();
  if (setjmp(encoder.errors.jump) != 0) return false;
  jpeg_create_compress(&jpeg);
  encoder.output.take_from(jpeg);
  jpeg.image_width = static_cast<JDIMENSION>(width), jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3, jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = factor;
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels + std::size_t{3} * jpeg.next_scanline * jpeg.image_width);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::string encode_jpeg(const Image& image, int quality, Chroma chroma) {
  Encoder encoder;
  if (!write(encoder, image.pixels.data(), image.width, image.height, quality,
             chroma == Chroma::kHalved ? 2 : 1))
    throw encoder.errors.error(Code::kInvalidArgument);
  return encoder.output.text();
}

}  // namespace abl::trainer
