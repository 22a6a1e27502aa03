// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "images/annotated.h"
#include "models/dense/mask_rcnn/instances.h"
#include "worker/trainer/tasks/batch.h"

namespace abl::tasks {

/// Sides of a batch are multiples of this: the coarsest map of a pyramid has a place for so many pixels.
inline constexpr std::int64_t kPaddedTo = 32;

/// What a detector learns in a step.
struct DetectionBatch {
  models::ImageBatch images;
  std::vector<models::Instances> targets;

  /// Some of its images. They share memory.
  DetectionBatch narrow(std::int64_t first, std::int64_t count) const;
};

/// Pictures in one tensor: normalised, then 0 beside and below each, to the least common size that is a
/// multiple of `kPaddedTo`. Result: float32, on the device.
models::ImageBatch padded_images(std::span<const images::Annotated> pictures, const BatchInput& input,
                                 torch::Device device);

/// The things that are learned from: no crowds, and nothing of which no pixel is in the picture; boxes are
/// cut at its edges. Result: on the device. `picture`: all things in it, but for crowds, have masks.
models::Instances targets_of(const images::Annotated& picture, torch::Device device);

}  // namespace abl::tasks
