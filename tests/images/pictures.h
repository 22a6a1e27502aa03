// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "images/jpeg_errors.h"
#include "images/random.h"

namespace abl::images {

/// How a test's JPEG is written.
struct JpegKind {
  std::string name;
  J_COLOR_SPACE colours = JCS_YCbCr;
  int across = 1, down = 1;  ///< pixels for one of chroma
  bool progressive = false;
};

/// A picture with edges in brightness and colour at every scale, so that a neighbour's pixel shows.
inline std::string jpeg_of(const JpegKind& kind, int width, int height) {
  const bool grey = kind.colours == JCS_GRAYSCALE,
             inks = kind.colours == JCS_CMYK || kind.colours == JCS_YCCK;
  const int channels = grey ? 1 : inks ? 4 : 3;
  RandomStream random{
      1, Purpose::kSubset, {static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height)}};
  std::string pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        pixels.push_back(static_cast<char>(((x / 5 + y / 3 + c) % 3 * 100 + random.below(56)) & 0xff));

  JpegErrors errors;
  jpeg_compress_struct jpeg{};
  jpeg.err = errors.set_up();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  if (setjmp(errors.jump) != 0) std::abort();  // a fault of the test
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width), jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = channels;
  jpeg.in_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_colorspace(&jpeg, kind.colours);
  jpeg_set_quality(&jpeg, 90, TRUE);
  if (!grey) jpeg.comp_info[0].h_samp_factor = kind.across, jpeg.comp_info[0].v_samp_factor = kind.down;
  if (inks) jpeg.comp_info[3].h_samp_factor = kind.across, jpeg.comp_info[3].v_samp_factor = kind.down;
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = reinterpret_cast<JSAMPROW>(pixels.data() +
                                           std::size_t{1} * jpeg.next_scanline * jpeg.image_width * channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string file{reinterpret_cast<char*>(bytes), size};
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return file;
}

}  // namespace abl::images
