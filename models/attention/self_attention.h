// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/layers.h"

namespace abl::models {

/// The attention of a vision transformer, without norm and residual: one fused projection to query, key and
/// value.
/// Parameters: `qkv` (its bias may be left out), `proj`.
/// Shape: x [B, N, dim] -> [B, N, dim].
class SelfAttentionImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when the heads do not divide the width.
  SelfAttentionImpl(std::int64_t dim, std::int64_t heads, torch::Device device = torch::kCPU,
                    bool has_qkv_bias = true);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const std::int64_t heads_;
  Linear qkv_{nullptr}, proj_{nullptr};
};
using SelfAttention = Part<SelfAttentionImpl>;

}  // namespace abl::models
