// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "images/image.h"

namespace abl::images {

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
  /// Where there are restart markers (`cut_jpeg`), what lies beside the region is not even unpacked.
  /// At a reduced scale the bounds of the region fall between pixels: see DecodedRegion.
  /// Throws: Error{kDataLoss} for damage up to the last row of the region (with restart markers: in its
  /// blocks) and for a missing end of the file;
  /// Error{kInvalidArgument} for a region that is empty or reaches outside.
  DecodedRegion decode(const Wanted& wanted);

  static constexpr int kMargin = 2;  ///< columns, and rows

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The whole picture: see JpegReader::decode.
Image decode_jpeg(std::string_view bytes, int shorter_side = 0);

/// How a sequential JPEG of one scan is divided.
struct JpegBlocks {
  int width = 0, height = 0;              ///< of the picture, in pixels
  int block_width = 0, block_height = 0;  ///< of a block (MCU), in pixels
  int restart_interval = 0;               ///< blocks from one restart marker to the next; 0: there are none
};

/// A JPEG of some rows and columns of blocks of another one.
struct JpegCut {
  std::string bytes;
  int left = 0, top = 0;  ///< where it lies in the other, in pixels
};

/// The blocks that show `region`, as a picture of their own: what stands between two restart markers can be
/// decoded without the rest, so that what is left out costs a search for markers and no more. `data`: where
/// in `jpeg` the compressed data begins, behind the header. Nothing where the markers are missing, do not
/// stand at the beginning of each row or not in their turn, and where no block above or beside the region
/// could be left out: those below it cost nothing, for a decoder stops.
std::optional<JpegCut> cut_jpeg(std::string_view jpeg, std::size_t data, const JpegBlocks& blocks,
                                const Rectangle& region);

}  // namespace abl::images
