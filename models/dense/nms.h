// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

namespace abl::models {

/// Non-maximum suppression: of boxes that overlap by more than `threshold` (intersection over union) the one
/// of the highest score; of equal scores the first. Computed by processors; boxes of another device are
/// brought there.
/// Shape: boxes [N, 4], scores [N] -> [K]: which boxes stay, the highest score first.
/// Source: as `torchvision.ops.nms` on processors, to the box.
torch::Tensor nms(const torch::Tensor& boxes, const torch::Tensor& scores, double threshold);

/// The same among boxes of one class.
/// Shape: classes [N], whole numbers.
/// Source: as `torchvision.ops.batched_nms` on processors, to the box: up to 1,000 boxes are moved apart by
/// class, which rounds their coordinates; of more each class is taken by itself.
torch::Tensor batched_nms(const torch::Tensor& boxes, const torch::Tensor& scores,
                          const torch::Tensor& classes, double threshold);

}  // namespace abl::models
