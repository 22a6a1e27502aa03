// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "images/image.h"
#include "images/jpeg_errors.h"

namespace abl::images {

/// Whether colour is kept for each pixel or for each 2×2 of them (4:2:0, as photographs usually are).
enum class Chroma { kFull, kHalved };

/// A JPEG file of a non-empty image; `quality` 1 … 100 is libjpeg's. Thread: any.
std::string encode_jpeg(const Image& image, int quality, Chroma chroma);

/// Where libjpeg writes a file. It begins in memory of ours: memory of its own it frees when that becomes too
/// small, and tells where the rest went only at the end, which an error does not reach.
class JpegOutput {
 public:
  JpegOutput() : first_(std::size_t{1} << 16), bytes_{first_.data()}, size_{first_.size()} {}
  ~JpegOutput() {
    if (bytes_ != first_.data()) std::free(bytes_);
  }
  JpegOutput(const JpegOutput&) = delete;
  JpegOutput& operator=(const JpegOutput&) = delete;

  /// May jump, as all of libjpeg.
  void take_from(jpeg_compress_struct& jpeg) { jpeg_mem_dest(&jpeg, &bytes_, &size_); }
  /// After jpeg_finish_compress.
  std::string text() const { return {reinterpret_cast<const char*>(bytes_), size_}; }

 private:
  std::vector<unsigned char> first_;
  unsigned char* bytes_;
  unsigned long size_;
};

/// The same picture, coefficient for coefficient, with a restart marker behind every block (MCU: 8 × 8 or
/// 16 × 16 pixels, as the chroma is sampled), so that a region's blocks can be found without decoding the
/// others: see cut_jpeg. Sequential, with Huffman tables made for it, and without what stands beside the
/// pixels (EXIF, profiles). Throws: Error{kDataLoss}
/// for what is damaged or breaks off. Thread: any.
std::string with_restarts(std::string_view jpeg);

}  // namespace abl::images
