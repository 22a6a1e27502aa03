// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "models/dense/boxes.h"

namespace abl::models {

struct AnchorOptions {
  std::vector<double> sizes = {32, 64, 128, 256,
                               512};         ///< pixels, of each level: the root of an anchor's area
  std::vector<double> ratios = {0.5, 1, 2};  ///< height by width
};

/// The boxes that proposals start from: at each place of a level one for each ratio, around the place times
/// the level's stride, which is the image's side by the level's, rounded down.
/// Shape: -> for each level [H·W·ratios, 4], place by place, in float32.
/// Throws: c10::ValueError where levels and sizes differ in number.
/// Source: "Faster R-CNN", section 3.1.1; rounded to pixels as in torchvision.
std::vector<torch::Tensor> make_anchors(const AnchorOptions& options, const ImageSize& image,
                                        const std::vector<torch::Tensor>& levels);

}  // namespace abl::models
