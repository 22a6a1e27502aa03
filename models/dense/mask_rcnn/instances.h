// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/dense/boxes.h"

namespace abl::models {

/// Images of several sizes in one tensor.
struct ImageBatch {
  torch::Tensor images;          ///< [B, 3, H, W], each in the upper left corner, 0 beside and below it
  std::vector<ImageSize> sizes;  ///< of each image
};

/// The things of an image that a detector learns.
struct Instances {
  torch::Tensor boxes;   ///< [N, 4], of a positive width and height
  torch::Tensor labels;  ///< [N], of int64, from 1
  torch::Tensor masks;   ///< [N, h, w], of uint8, 0 or 1, of the image's size or that of the batch
};

/// What a detector finds in an image, the surest first.
struct Detections {
  torch::Tensor boxes;   ///< [n, 4]
  torch::Tensor labels;  ///< [n], of int64, from 1
  torch::Tensor scores;  ///< [n]
  torch::Tensor masks;   ///< [n, side, side]: probabilities within the box
};

}  // namespace abl::models
