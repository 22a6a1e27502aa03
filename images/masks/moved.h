// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/image.h"
#include "images/masks/mask.h"

namespace abl::images {

/// Left becomes right.
Mask flipped(const Mask& mask);

/// The part of `region`, which may reach outside: nothing is set there.
Mask cropped(const Mask& mask, const Rectangle& region);

/// To another size, without values in between: pixel (x, y) is the old one at (⌊x·old/new⌋, ⌊y·old/new⌋), as
/// PyTorch's and OpenCV's "nearest" take it, in whole numbers. The sides of both: at least 1.
Mask resized(const Mask& mask, int width, int height);

}  // namespace abl::images
