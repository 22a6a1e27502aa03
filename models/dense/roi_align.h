// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

namespace abl::models {

struct RoiAlignOptions {
  std::int64_t height = 7, width = 7;  ///< of the result, bins
  std::int64_t samples = 2;  ///< along each side of a bin; 0: as many as the map has places there, rounded up
  bool aligned = false;      ///< places of a map lie at the middles of its pixels, and boxes are not widened
};

/// The mean of bilinear samples in each bin of regions of maps. What lies outside a map by more than a place
/// is 0. A region along one axis is a sum over lines of the map, and the result is the two sums in turn:
///   out[p, q] = Σ_y a[p, y] Σ_x b[q, x] map[y, x]
/// On processors a loop over regions, on other devices `gathered_roi_align`. Sums are of float32 at least.
/// Shape: maps [B, C, H, W]; rois [K, 5], each the number of its image and a box in pixels of the image
///   -> [K, C, height, width], in the maps' type, channels last in memory.
/// Units: `scale` places of the map for a pixel of the image.
/// Gradients: of the maps; none of their own.
/// Throws: c10::ValueError for other shapes, and on processors for images that are not there.
/// Source: "Mask R-CNN", section 3; as `torchvision.ops.roi_align`.
torch::Tensor roi_align(const torch::Tensor& maps, const torch::Tensor& rois, double scale,
                        const RoiAlignOptions& options);

/// The same as bags of places with weights, of ATen's operators alone. The maps' type is float32 or float64.
torch::Tensor gathered_roi_align(const torch::Tensor& maps, const torch::Tensor& rois, double scale,
                                 const RoiAlignOptions& options);

/// The regions of each image as rois.
/// Shape: [Nᵢ, 4] of each image -> [ΣNᵢ, 5].
torch::Tensor as_rois(const std::vector<torch::Tensor>& boxes);

/// Which level of a pyramid a box is taken from: that of 224 x 224 pixels from the level of stride 16, of
/// twice the side from the next.
///   ⌊4 + log2(√area / 224)⌋ - log2(strides[0])
/// Shape: [K, 4] -> [K], from 0 to the last level.
/// Source: "Feature pyramid networks for object detection", equation 1.
torch::Tensor pyramid_levels(const torch::Tensor& boxes, const std::vector<std::int64_t>& strides);

/// Regions of the pyramid's levels, each of its own.
/// Shape: levels [B, C, Hᵢ, Wᵢ], rois [K, 5] -> [K, C, height, width].
torch::Tensor pyramid_roi_align(const std::vector<torch::Tensor>& levels,
                                const std::vector<std::int64_t>& strides, const torch::Tensor& rois,
                                const RoiAlignOptions& options);

}  // namespace abl::models
