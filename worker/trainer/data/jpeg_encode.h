// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "worker/trainer/data/image_source.h"

namespace abl::trainer {

/// Whether colour is kept for each pixel or for each 2×2 of them (4:2:0, as photographs usually are).
enum class Chroma { kFull, kHalved };

/// A JPEG file of a non-empty image; `quality` 1 … 100 is libjpeg's. Thread: any.
std::string encode_jpeg(const Image& image, int quality, Chroma chroma);

}  // namespace abl::trainer
