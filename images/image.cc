// SPDX-License-Identifier: Apache-2.0
#include "images/image.h"

#include <fmt/format.h>

#include "base/error.h"

namespace abl::images {

void expect_inside(const Rectangle& region, int width, int height) {
  if (region.left < 0 || region.top < 0 || region.width < 1 || region.height < 1 ||
      region.width > width - region.left || region.height > height - region.top)
    throw Error{Code::kInvalidArgument,
                fmt::format("region {}×{} at ({}, {}) does not lie in a picture of {}×{} pixels",
                            region.width, region.height, region.left, region.top, width, height)};
}

}  // namespace abl::images
