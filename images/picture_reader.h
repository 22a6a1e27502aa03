// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "images/image.h"

namespace abl::images {

/// One file of a format that is decoded at full scale alone. Thread: one; any number of readers side by side.
class PictureReader {
 public:
  PictureReader() = default;
  virtual ~PictureReader() = default;
  PictureReader(const PictureReader&) = delete;
  PictureReader& operator=(const PictureReader&) = delete;

  virtual int width() const = 0;
  virtual int height() const = 0;

  /// A region of it as red, green, blue, once, as Pillow's convert("RGB"): alpha is dropped. Throws: as
  /// opening it does. `region`: lies in the picture.
  virtual Image decode(const Rectangle& region) = 0;
};

/// What a decoded value is: the colour that a PNG shows, or the number that it has for it, three times.
enum class PngValues { kColours, kIndices };

/// A PNG, of which the header is read: grey, colour, palette, with or without alpha, of 1 to 16 bits,
/// interlaced or not. An index behind the palette is black, 16 bits of a colour lose their lower byte and 16
/// bits of grey above 255 are white. No more than a region and a row are kept, and rows below it are not
/// read: damage up to its last row is found, and a missing end of the file. `bytes` must outlive it.
/// Throws: Error{kDataLoss} with libpng's reason, and for indices of a file that has none: one of colours or
/// of 16 bits; Error{kResourceExhausted} where memory is missing.
std::unique_ptr<PictureReader> open_png(std::string_view bytes, PngValues values = PngValues::kColours);

/// A WebP, lossy or lossless; of an animation its first picture. The format has no rows that could be passed
/// over: the whole picture is decoded. `bytes` must outlive it. Throws: Error{kDataLoss} for what is no WebP
/// file, breaks off or is damaged; Error{kResourceExhausted} where memory is missing.
std::unique_ptr<PictureReader> open_webp(std::string_view bytes);

}  // namespace abl::images
