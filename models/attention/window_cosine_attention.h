// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/attention/window_attention.h"

namespace abl::models {

/// A small MLP from a relative position to a bias for each head.
/// Parameters: `0` (2 -> 512, with bias), `2` (512 -> heads, without).
/// Shape: [P, 2] -> [P, heads].
/// Source: Swin V2 section 3.3 (Continuous relative position bias).
class PositionBiasMlpImpl : public torch::nn::Module {
 public:
  explicit PositionBiasMlpImpl(std::int64_t heads, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  Linear fc1_{nullptr}, fc2_{nullptr};
};
using PositionBiasMlp = Part<PositionBiasMlpImpl>;

/// Attention by the angle between query and key, with a learned factor for each head and a bias that is a
/// function of the relative position.
///   softmax(exp(min(logit_scale, ln 100)) cos(q, k) + 16 sigmoid(cpb_mlp(position)) + mask) v
/// Parameters: `logit_scale` [heads, 1, 1], which starts at ln 10; `cpb_mlp`; `qkv` (without bias), `q_bias`
/// and `v_bias` (the key has none); `proj`.
/// Source: Swin V2 section 3.3, eq. 2 to 4; the release.
class WindowCosineAttentionImpl : public WindowAttentionImpl {
 public:
  explicit WindowCosineAttentionImpl(const WindowAttentionOptions& options,
                                     torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;

 private:
  torch::Tensor bias();

  const WindowAttentionOptions options_;
  torch::Tensor logit_scale_, q_bias_, v_bias_, coordinates_, positions_;
  PositionBiasMlp cpb_mlp_{nullptr};
  Linear qkv_{nullptr}, proj_{nullptr};
};

}  // namespace abl::models
