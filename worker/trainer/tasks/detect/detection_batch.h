// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/annotated/annotated_source.h"
#include "data/order.h"
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

/// Of every picture, whether it is wider than high.
std::vector<bool> lying(const data::AnnotatedSource& pictures);

/// The same pictures in another order: each `batch` of them, one after another, all lie, or none does. What
/// does not fill a batch of its kind comes last, so that one of an epoch may hold both kinds.
std::vector<std::uint32_t> by_aspect(const std::vector<std::uint32_t>& order, const std::vector<bool>& lies,
                                     std::size_t batch);

/// In which order an epoch goes through pictures whose batches are padded to one size: a function of seed,
/// epoch and size of the batch alone. Source: detectron2 0.6, AspectRatioGroupedDataset, which goes on with
/// what is left in the next epoch; here every epoch has each picture once. Thread: one at a time.
class AspectOrder {
 public:
  AspectOrder(std::int64_t seed, std::vector<bool> lies, std::int64_t batch);
  /// Kept until another epoch is asked for.
  const std::vector<std::uint32_t>& of(std::uint64_t epoch);

 private:
  data::EpochOrder order_;
  const std::vector<bool> lies_;
  const std::size_t batch_;
  std::optional<std::uint64_t> epoch_;
  std::vector<std::uint32_t> grouped_;  ///< of that epoch
};

}  // namespace abl::tasks
