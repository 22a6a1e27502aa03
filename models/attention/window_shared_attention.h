// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include <vector>

#include "models/attention/shared_attention.h"
#include "models/attention/window_attention.h"

namespace abl::models {

/// The ablated choices of attention inside windows: as `SharedAttention`, with a bias beside each projection
/// and Swin's position bias added to the scaled logits; the Gaussian term stands inside the scale.
///   Σ_h W_h [V_hᵀ X softmax(kernel + bias + mask) - P_hᵀ x]
/// A matrix and its bias are stored once, in `weight` and `bias` under its letter in lower case, and a
/// projection that several roles share is computed once. WEIGHT is `proj`, with bias; a WEIGHT tied to
/// another role is that role's matrix, not transposed, and only its bias `proj_bias` is stored. A PROBE
/// outside has no bias: WEIGHT's would be the same. Matrices start normal with deviation 0.02, biases at 0.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
/// Source: MSF eq. 1, 12 and 14, sections 2.3 and 3.2 (Swin); the place of biases is a reading.
class WindowSharedAttentionImpl : public BiasedWindowAttentionImpl, public WeightOwner {
 public:
  WindowSharedAttentionImpl(const WindowAttentionOptions& options, AttentionChoice choice,
                            torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;

  std::vector<torch::Tensor> weights() const override { return weight->values(); }

  torch::nn::ParameterDict weight{nullptr}, bias{nullptr};

 private:
  const AttentionChoice choice_;
  const bool weight_is_tied_;
  Linear proj_{nullptr};
  torch::Tensor proj_bias_;
};

}  // namespace abl::models
