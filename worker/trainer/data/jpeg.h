// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// One JPEG, of which the header is read first: grey, YCbCr, RGB, CMYK and YCCK, sequential or progressive.
/// `bytes` must outlive it. Thread: one; any number of readers side by side.
class JpegReader {
 public:
  /// Throws: Error{kDataLoss} with libjpeg-turbo's reason; as all functions here, Error{kResourceExhausted}
  /// where memory is missing.
  explicit JpegReader(std::string_view bytes);
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int width() const;
  int height() const;

  /// Decodes it to red, green, blue, once. With `shorter_side` > 0 it may come out smaller than it is (by
  /// libjpeg-turbo's scaled DCT), but its shorter side not below that.
  /// Throws: Error{kDataLoss}; a picture that breaks off in the middle counts as damaged.
  Image decode(int shorter_side = 0);

  /// Decodes a region, once: only its rows and columns, at the smallest of 1, 1/2, 1/4 and 1/8 that leaves it
  /// at least `wanted.width` × `wanted.height`. At full scale the pixels are those of `decode()`, to the
  /// byte: chroma is smoothed across kMargin columns, so that many more are decoded at each side and cut off.
  /// Where there are restart markers (jpeg_restarts.h), what lies beside the region is not even unpacked.
  /// At a reduced scale the bounds of the region fall between pixels: see RegionView.
  /// Throws: Error{kDataLoss} for damage up to the last row of the region (with restart markers: in its
  /// blocks) and for a missing end of the file;
  /// Error{kInvalidArgument} for a region that is empty or reaches outside.
  RegionView decode(const Wanted& wanted);

  static constexpr int kMargin = 2;  ///< columns, and rows

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The whole picture: see JpegReader::decode.
Image decode_jpeg(std::string_view bytes, int shorter_side = 0);

}  // namespace abl::trainer
