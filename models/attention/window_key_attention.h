// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/attention/manifold_key.h"
#include "models/attention/window_attention.h"

namespace abl::models {

/// Swin's attention with a manifold key in place of the linear one; the tokens that it mixes are those of a
/// window, and all windows share it.
/// Parameters: `qv` (query and value, with bias), `key`, `proj`, the table.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
/// Source: manifold key section 4 in Swin's eq. 4.
class WindowKeyAttentionImpl : public BiasedWindowAttentionImpl {
 public:
  WindowKeyAttentionImpl(const WindowAttentionOptions& options, const KeyChoice& choice,
                         torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;

 private:
  Linear qv_{nullptr}, proj_{nullptr};
  ManifoldKey key_{nullptr};
};

}  // namespace abl::models
