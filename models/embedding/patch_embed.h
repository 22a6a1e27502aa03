// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/layers.h"

namespace abl::models {

/// Images of one size to tokens, row by row: one convolution whose stride is its kernel.
/// Parameters: `proj`.
/// Shape: images [B, 3, S, S] -> [B, (S/patch)², dim].
class PatchEmbedImpl : public torch::nn::Module {
 public:
  PatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                 torch::Device device = torch::kCPU);
  /// Throws: c10::ValueError when the images have another size.
  torch::Tensor forward(const torch::Tensor& images);

 private:
  const std::int64_t image_size_;
  Conv2d proj_{nullptr};
};
using PatchEmbed = Part<PatchEmbedImpl>;

}  // namespace abl::models
