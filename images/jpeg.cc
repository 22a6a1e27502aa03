// SPDX-License-Identifier: Apache-2.0
#include "images/jpeg.h"

#include <fmt/format.h>
#include <jerror.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "images/jpeg_errors.h"

// libjpeg's codes and macros; after its main header
namespace abl::images {

struct JpegReader::State {
  JpegErrors errors{};
  jpeg_decompress_struct jpeg{};  // zeros: may be destroyed before it was created
  std::string_view bytes;         // the file
  std::size_t data = 0;           // where its compressed data begins, behind the header
  ~State() { jpeg_destroy_decompress(&jpeg); }

  bool inks() const { return jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK; }
  /// What a side measures at a scale.
  static int scaled(int side, int eighths) { return (side * eighths + 7) / 8; }
  Image part(int eighths, int left, int top, int width, int height);
  /// A smaller file that shows the region, and around it what its pixels are made of at this scale.
  std::optional<JpegCut> cut(Rectangle region, int eighths) const;
};

namespace {

constexpr int kLargestJpegSide = 32'768;  // a hostile header must not make us allocate gigabytes
constexpr int kEighths = 8;               // scales are n/8: libjpeg-turbo's DCTs of n × n

/// Rows and columns of the scaled picture.
struct Part {
  JDIMENSION left, top, width, height;
};

/// The columns to decode for those of a part: chroma is smoothed across the ones beside it.
std::pair<JDIMENSION, JDIMENSION> columns_for(const Part& part, JDIMENSION all) {
  constexpr JDIMENSION kMargin = JpegReader::kMargin;
  const JDIMENSION from = part.left - std::min(part.left, kMargin);
  return {from, std::min(all, part.left + part.width + kMargin) - from};
}

// The three functions below are libjpeg's side of the border: see JpegErrors.

bool read_header(jpeg_decompress_struct& jpeg, JpegErrors& errors, const unsigned char* data,
                 unsigned long size) {
  jpeg.err = errors.set_up();
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, data, size);
  jpeg_read_header(&jpeg, TRUE);
  return true;
}

bool set_scale(jpeg_decompress_struct& jpeg, JpegErrors& errors, int eighths, bool inks) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg.scale_num = static_cast<unsigned>(eighths), jpeg.scale_denom = kEighths;
  jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_calc_output_dimensions(&jpeg);
  return true;
}

/// Without an end marker the file is cut off, though perhaps below the rows that were asked for. In the
/// compressed data itself, which `rest` begins with, 0xff is never followed by 0xd9.
bool has_end(std::string_view rest) {
  return rest.rfind("\xff\xd9") != rest.npos;  // as a rule its last two bytes
}

/// `row` has room for a whole row; `out` [part.height, part.width, channels].
bool read_rows(jpeg_decompress_struct& jpeg, JpegErrors& errors, const Part& part, unsigned char* row,
               unsigned char* out) {
  if (setjmp(errors.jump) != 0) return false;
  const std::string_view rest{reinterpret_cast<const char*>(jpeg.src->next_input_byte),
                              jpeg.src->bytes_in_buffer};
  const bool whole_file_is_read = jpeg_has_multiple_scans(&jpeg);  // before the first row comes out
  jpeg_start_decompress(&jpeg);
  const std::size_t pixel = static_cast<std::size_t>(jpeg.output_components);
  auto [from, width] = columns_for(part, jpeg.output_width);
  if (width < jpeg.output_width) jpeg_crop_scanline(&jpeg, &from, &width);  // moves `from` to a block's edge
  if (part.top > 0) jpeg_skip_scanlines(&jpeg, part.top);
  for (JDIMENSION y = 0; y < part.height; ++y) {
    jpeg_read_scanlines(&jpeg, &row, 1);
    std::memcpy(out + y * part.width * pixel, row + (part.left - from) * pixel, part.width * pixel);
  }
  if (jpeg.output_scanline == jpeg.output_height)
    jpeg_finish_decompress(&jpeg);
  else if (!whole_file_is_read && !has_end(rest))
    WARNMS(&jpeg, JWRN_JPEG_EOF);
  return true;
}

/// libjpeg-turbo has no decoder from CMYK to RGB: Adobe writes the four inks inverted.
Image from_inks(const Image& inks) {
  Image rgb{inks.width, inks.height, std::vector<std::uint8_t>(inks.pixels.size() / 4 * 3)};
  for (std::size_t i = 0, o = 0; i < inks.pixels.size(); i += 4)
    for (int c = 0; c < 3; ++c)
      rgb.pixels[o++] = static_cast<std::uint8_t>(inks.pixels[i + c] * inks.pixels[i + 3] / 255);
  return rgb;
}

}  // namespace

/// Shape: the pixels of the scaled picture from (left, top).
Image JpegReader::State::part(int eighths, int left, int top, int width, int height) {
  const auto fail = [this] { return errors.error(Code::kDataLoss); };
  if (!set_scale(jpeg, errors, eighths, inks())) throw fail();
  const std::size_t channels = inks() ? 4 : 3;
  std::vector<std::uint8_t> row(jpeg.output_width * channels);
  Image image{width, height, std::vector<std::uint8_t>(channels * width * height)};
  const auto number = [](int value) { return static_cast<JDIMENSION>(value); };
  if (!read_rows(jpeg, errors, {number(left), number(top), number(width), number(height)}, row.data(),
                 image.pixels.data()))
    throw fail();
  return inks() ? from_inks(image) : std::move(image);
}

std::optional<JpegCut> JpegReader::State::cut(Rectangle region, int eighths) const {
  const bool one_scan = !jpeg.progressive_mode && jpeg.comps_in_scan == jpeg.num_components;
  if (jpeg.restart_interval == 0 || !one_scan || jpeg.arith_code || !has_end(bytes.substr(data)))
    return std::nullopt;
  const bool interleaved = jpeg.num_components > 1;  // a component alone comes block by block
  const int margin = kMargin * kEighths / eighths;
  region.left -= margin, region.width += 2 * margin, region.top -= margin, region.height += 2 * margin;
  return cut_jpeg(bytes, data,
                  {.width = static_cast<int>(jpeg.image_width),
                   .height = static_cast<int>(jpeg.image_height),
                   .block_width = DCTSIZE * (interleaved ? jpeg.max_h_samp_factor : 1),
                   .block_height = DCTSIZE * (interleaved ? jpeg.max_v_samp_factor : 1),
                   .restart_interval = static_cast<int>(jpeg.restart_interval)},
                  region);
}

JpegReader::JpegReader(std::string_view bytes) : state_{std::make_unique<State>()} {
  if (bytes.empty()) throw Error{Code::kDataLoss, "the file is empty"};
  if (!read_header(state_->jpeg, state_->errors, reinterpret_cast<const unsigned char*>(bytes.data()),
                   bytes.size()))
    throw state_->errors.error(Code::kDataLoss);
  if (std::max(width(), height()) > kLargestJpegSide)
    throw Error{Code::kDataLoss, fmt::format("it claims to be {}×{} pixels; at most {} a side are accepted",
                                             width(), height(), kLargestJpegSide)};
  state_->bytes = bytes, state_->data = bytes.size() - state_->jpeg.src->bytes_in_buffer;
}

JpegReader::~JpegReader() = default;

int JpegReader::width() const { return static_cast<int>(state_->jpeg.image_width); }
int JpegReader::height() const { return static_cast<int>(state_->jpeg.image_height); }

Image JpegReader::decode(int shorter_side) {
  const auto scaled = State::scaled;
  int eighths = kEighths;
  if (shorter_side > 0)
    while (eighths > 1 && scaled(std::min(width(), height()), eighths - 1) >= shorter_side) --eighths;
  // of several scales that give the same dimensions (tiny pictures have them) the one nearest to the full
  while (eighths < kEighths && scaled(width(), eighths + 1) == scaled(width(), eighths) &&
         scaled(height(), eighths + 1) == scaled(height(), eighths))
    ++eighths;
  return state_->part(eighths, 0, 0, scaled(width(), eighths), scaled(height(), eighths));
}

DecodedRegion JpegReader::decode(const Wanted& wanted) {
  const auto& [region, wanted_width, wanted_height] = wanted;
  expect_inside(region, width(), height());
  int eighths = kEighths;
  if (wanted_width > 0 && wanted_height > 0)
    while (eighths > 1 && region.width * (eighths / 2) >= wanted_width * kEighths &&
           region.height * (eighths / 2) >= wanted_height * kEighths)
      eighths /= 2;  // 7/8, 6/8 … have no vector code: they take as long as the full scale, and blur

  if (const auto cut = state_->cut(region, eighths)) {
    const Rectangle moved{region.left - cut->left, region.top - cut->top, region.width, region.height};
    DecodedRegion decoded = JpegReader{cut->bytes}.decode({moved, wanted_width, wanted_height});
    decoded.region = region;  // blocks begin at whole pixels at every scale: the rest is the same
    return decoded;
  }
  const auto first = [&](int at) { return at * eighths / kEighths; };
  const auto exact = [&](int at) { return static_cast<double>(at) * eighths / kEighths; };
  const int left = first(region.left), right = State::scaled(region.left + region.width, eighths);
  const int top = first(region.top), bottom = State::scaled(region.top + region.height, eighths);
  return {.image = state_->part(eighths, left, top, right - left, bottom - top),
          .region = region,
          .left = exact(region.left) - left,
          .top = exact(region.top) - top,
          .width = exact(region.width),
          .height = exact(region.height)};
}

Image decode_jpeg(std::string_view bytes, int shorter_side) { return JpegReader{bytes}.decode(shorter_side); }

namespace {

// Source: ITU-T T.81, table B.1 and section B.2.2
constexpr unsigned char kMarker = 0xff, kStuffed = 0x00, kTemporary = 0x01, kRestart = 0xd0, kEnd = 0xd9,
                        kBaseline = 0xc0, kExtended = 0xc1;
constexpr std::size_t kRestarts = 8;                          // RST0 … RST7, in turns
constexpr std::size_t kHeightInFrame = 5, kWidthInFrame = 7;  // behind the marker's first byte

/// A picture as a grid of segments, each from one restart marker to the next.
struct Grid {
  int columns, rows;
  int width, height;  // of a segment, in pixels
};

/// Segments [from, to) of one side.
struct Range {
  int from, to;
};

unsigned char byte(std::string_view bytes, std::size_t at) { return static_cast<unsigned char>(bytes[at]); }

int divided_up(int value, int by) { return (value + by - 1) / by; }

std::optional<Grid> grid_of(const JpegBlocks& blocks) {
  const int across = divided_up(blocks.width, blocks.block_width);
  if (blocks.restart_interval < 1 || across % blocks.restart_interval != 0) return std::nullopt;
  return Grid{across / blocks.restart_interval, divided_up(blocks.height, blocks.block_height),
              blocks.block_width * blocks.restart_interval, blocks.block_height};
}

/// Where the first `count` segments begin, and where the one behind them would; nothing unless every marker
/// between them is the one whose turn it is.
std::optional<std::vector<std::size_t>> segments(std::string_view jpeg, std::size_t data, std::size_t count) {
  if (count > (jpeg.size() - data) / 2) return std::nullopt;  // a marker has two bytes
  std::vector<std::size_t> begins{data};
  begins.reserve(count + 1);
  for (std::size_t at = jpeg.find(static_cast<char>(kMarker), data);
       begins.size() <= count && at < jpeg.size() - 1; at = jpeg.find(static_cast<char>(kMarker), at)) {
    const unsigned char code = byte(jpeg, ++at);
    if (code == kStuffed || code == kMarker) continue;
    const auto turn = static_cast<unsigned char>(kRestart + (begins.size() - 1) % kRestarts);
    if (code != turn && !(code == kEnd && begins.size() == count)) return std::nullopt;
    begins.push_back(++at);
  }
  if (begins.size() <= count) return std::nullopt;
  return begins;
}

/// The header, of another size.
std::optional<std::string> header_of(std::string_view header, int width, int height) {
  for (std::size_t at = 2; at + 3 < header.size() && byte(header, at) == kMarker;) {
    const unsigned char code = byte(header, at + 1);
    if (code == kMarker) {  // it may be repeated
      ++at;
      continue;
    }
    if ((code == kBaseline || code == kExtended) && at + kWidthInFrame + 1 < header.size()) {
      std::string changed{header};
      const auto put = [&](std::size_t place, int side) {
        changed[at + place] = static_cast<char>(side >> 8);
        changed[at + place + 1] = static_cast<char>(side & 0xff);
      };
      put(kHeightInFrame, height), put(kWidthInFrame, width);
      return changed;
    }
    if (code == kTemporary || (code >= kRestart && code < kRestart + kRestarts)) break;  // without a length
    at += 2 + (byte(header, at + 2) << 8 | byte(header, at + 3));
  }
  return std::nullopt;
}

}  // namespace

std::optional<JpegCut> cut_jpeg(std::string_view jpeg, std::size_t data, const JpegBlocks& blocks,
                                const Rectangle& region) {
  const auto grid = grid_of(blocks);
  if (!grid) return std::nullopt;
  const auto range = [](int first, int length, int step, int all) {
    return Range{std::max(0, first) / step, std::min(all, divided_up(first + length, step))};
  };
  const Range columns = range(region.left, region.width, grid->width, grid->columns),
              rows = range(region.top, region.height, grid->height, grid->rows);
  if (columns.to - columns.from == grid->columns && rows.from == 0) return std::nullopt;

  const int left = columns.from * grid->width, top = rows.from * grid->height;
  auto bytes = header_of(jpeg.substr(0, data), std::min(blocks.width, columns.to * grid->width) - left,
                         std::min(blocks.height, rows.to * grid->height) - top);
  const auto begins =
      segments(jpeg, data, static_cast<std::size_t>(grid->columns) * static_cast<std::size_t>(rows.to));
  if (!bytes || !begins) return std::nullopt;
  bytes->reserve(jpeg.size());
  std::size_t written = 0;
  for (int row = rows.from; row < rows.to; ++row)
    for (int column = columns.from; column < columns.to; ++column) {
      const auto segment = static_cast<std::size_t>(row) * grid->columns + column;
      bytes->append(jpeg, (*begins)[segment], (*begins)[segment + 1] - (*begins)[segment]);
      bytes->back() = static_cast<char>(kRestart + written++ % kRestarts);  // the marker that ended it
    }
  bytes->back() = static_cast<char>(kEnd);
  return JpegCut{std::move(*bytes), left, top};
}

}  // namespace abl::images
