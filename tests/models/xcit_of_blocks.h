// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "models/backbones/xcit.h"

namespace abl::models {

/// A small XCiT for images of 64 x 64 pixels and ten classes.
inline XcitOptions xcit_of_blocks(std::vector<XcitChoice> blocks) {
  return {.image_size = 64, .patch = 8, .classes = 10, .dim = 64, .heads = 4, .blocks = std::move(blocks)};
}

}  // namespace abl::models
