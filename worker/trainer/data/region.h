// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "worker/trainer/augmentation/image.h"

namespace abl::trainer {

/// What is to be seen of an image, and how many pixels of it are needed at least.
struct Wanted {
  Rectangle region;
  int width = 0, height = 0;  ///< the decoder may halve the region down to these; 0: at full scale
};

/// Told an image's dimensions, says what is wanted of it. Called once for each image, before it is decoded:
/// the place to draw a crop.
using ChooseRegion = std::function<Wanted(int width, int height)>;

/// Throws: Error{kInvalidArgument} for a region that is empty or reaches outside a picture of that size.
void expect_inside(const Rectangle& region, int width, int height);

}  // namespace abl::trainer
