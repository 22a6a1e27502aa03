// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl::trainer {

/// The same picture, coefficient for coefficient, with a restart marker behind every block (MCU: 8 × 8 or
/// 16 × 16 pixels, as the chroma is sampled), so that a region's blocks can be found without decoding the
/// others: see cut_jpeg. Sequential, with Huffman tables made for it, and without what stands beside the
/// pixels (EXIF, profiles). Throws: Error{kDataLoss}
/// for what is damaged or breaks off. Thread: any.
std::string with_restarts(std::string_view jpeg);

}  // namespace abl::trainer
