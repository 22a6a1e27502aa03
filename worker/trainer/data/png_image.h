// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// One PNG, of which the header is read first: grey, colour, palette, with or without alpha, of 1 to 16 bits,
/// interlaced or not. `bytes` must outlive it. Thread: one; any number of readers side by side.
class PngReader {
 public:
  /// Throws: Error{kDataLoss} with libpng's reason.
  explicit PngReader(std::string_view bytes);
  ~PngReader();
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  int width() const;
  int height() const;

  /// A region of it as red, green, blue, once. As Pillow's convert("RGB"): alpha is dropped, an index behind
  /// the palette is black, 16 bits of a colour lose their lower byte and 16 bits of grey above 255 are white.
  /// No more than the region and a row are kept, and rows below it are not read.
  /// Throws: Error{kDataLoss} for damage up to the last row of the region and for a missing end of the file.
  /// `region`: lies in the picture.
  Image decode(const Rectangle& region);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace abl::trainer
