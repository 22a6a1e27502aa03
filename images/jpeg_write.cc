// SPDX-License-Identifier: Apache-2.0
#include "images/jpeg_write.h"

#include <cstdio>

#include "base/error.h"
#include "images/jpeg_errors.h"

namespace abl::images {
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

namespace {

struct Recoder {
  JpegErrors errors{};
  jpeg_decompress_struct from{};  // zeros: may be destroyed before they were created
  jpeg_compress_struct to{};
  JpegOutput output;
  ~Recoder() {
    jpeg_destroy_compress(&to);  // first: it reads coefficients that lie in `from`
    jpeg_destroy_decompress(&from);
  }
};

/// A progressive file may end before it has sent every bit. Its blocks are smoothed into each other when it
/// is decoded, those of a sequential one never.
bool is_smoothed(const jpeg_decompress_struct& jpeg) {
  constexpr int kSmoothed = 10;  // coefficients that libjpeg-turbo looks at
  if (!jpeg.progressive_mode || !jpeg.coef_bits) return false;
  for (int component = 0; component < jpeg.num_components; ++component)
    for (int i = 0; i < kSmoothed; ++i)
      if (jpeg.coef_bits[component][i] != 0) return true;
  return false;
}

/// libjpeg's side of the border: see JpegErrors.
bool recode(Recoder& recoder, std::string_view jpeg) {
  auto& [errors, from, to, output] = recoder;
  from.err = to.err = errors.set_up();
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(jpeg.data()), jpeg.size());
  jpeg_read_header(&from, TRUE);
  auto* coefficients = jpeg_read_coefficients(&from);
  if (is_smoothed(from)) {
    std::snprintf(errors.reason, sizeof errors.reason, "a progressive file that is not complete");
    return false;
  }
  jpeg_copy_critical_parameters(&from, &to);
  output.take_from(to);
  to.restart_interval = 1;
  to.optimize_coding = TRUE;
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_finish_decompress(&from);
  return true;
}

}  // namespace

std::string with_restarts(std::string_view jpeg) {
  Recoder recoder;
  if (!recode(recoder, jpeg)) throw recoder.errors.error(Code::kDataLoss);
  return recoder.output.text();
}

}  // namespace abl::images
