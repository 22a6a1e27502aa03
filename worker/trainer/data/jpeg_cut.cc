// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/data/jpeg_cut.h"

#include <algorithm>
#include <vector>

namespace abl::trainer {
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

}  // namespace abl::trainer
