// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

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

}  // namespace abl::trainer
