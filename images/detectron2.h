// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "images/joint.h"
#include "images/random.h"

namespace abl::images {

/// Pictures of one size, in which things are of any: scaled to a random part of what would fit, then cut at a
/// random place where that is more than the size, and framed at the right and below where it is less.
/// Source: Ghiasi et al., Simple copy-paste (CVPR 2021), section 3; detectron2 0.6, ResizeScale and
/// FixedSizeCrop of its data/transforms, whose rounding and fill it is.
struct LargeScaleJitter {
  int width = 1024, height = 1024;
  double low = 0.1, high = 2;  ///< of the scale at which the picture just fits
  double flip = 0.5;           ///< probability
  Colour fill{128, 128, 128};
};

/// Draws: the flip, the scale, left and top as one number.
Annotated large_scale_jitter(Annotated picture, const LargeScaleJitter& options, RandomStream& random);

}  // namespace abl::images
