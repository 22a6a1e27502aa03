// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "worker/trainer/data/loader.h"

namespace abl::trainer {

/// Brings batches to where the model is. They travel as bytes, without the host waiting for them where the
/// loader pinned their memory, and become numbers there.
class BatchInput {
 public:
  explicit BatchInput(torch::Device device);

  /// The images, normalised with ImageNet's mean and deviation, and noise where one was erased.
  /// Shape: [B, 3, S, S], float32, contiguous.
  torch::Tensor images(const Batch& batch) const;
  /// Shape: [B], int64.
  torch::Tensor labels(const Batch& batch) const;

 private:
  const torch::Device device_;
  const torch::Tensor mean_, deviation_;  ///< [3]
};

}  // namespace abl::trainer
