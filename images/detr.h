// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "images/joint.h"
#include "images/random.h"

namespace abl::images {

/// The size of a picture whose shorter side becomes `shorter`, or less where the longer one would be more
/// than `longest` (0: no bound). Source: facebookresearch/detr, datasets/transforms.py,
/// get_size_with_aspect_ratio.
Size size_by_shorter(int width, int height, int shorter, int longest);

/// DETR's for training on COCO: a flip, then one of the sides at random; half of the pictures are first
/// brought to another side and cut. Source: facebookresearch/detr, datasets/coco.py, make_coco_transforms.
struct MultiScale {
  std::vector<int> sides{480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800};  ///< shorter ones
  int longest = 1333;
  double flip = 0.5;                            ///< probability
  double crop = 0.5;                            ///< probability; 0: no picture is cut
  std::vector<int> before_crop{400, 500, 600};  ///< shorter sides
  int smallest_crop = 384, largest_crop = 600;  ///< sides of the part, each drawn by itself
};

/// Draws: the flip; whether it is cut, and then the side before that, the part's width, height, left and top;
/// the side. Deviation: boxes of cut masks are drawn anew (`cropped`). Throws: Error{kInvalidArgument} where
/// there is no side to choose.
Annotated multi_scale(Annotated picture, const MultiScale& options, RandomStream& random);

}  // namespace abl::images
