// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/attention/manifold_key.h"
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

/// Swin V2's attention but for its projections: by the angle between query and key, with a learned factor for
/// each head and a bias that is a function of the relative position.
///   softmax(exp(min(logit_scale, ln 100)) cos(q, k) + 16 sigmoid(cpb_mlp(position)) + mask) v
/// Parameters: `logit_scale` [heads, 1, 1], which starts at ln 10; `cpb_mlp`; `q_bias` and `v_bias` (the key
/// has none).
/// Source: Swin V2 section 3.3, eq. 2 to 4; the release.
class CosineAttentionBaseImpl : public WindowAttentionImpl {
 protected:
  CosineAttentionBaseImpl(const WindowAttentionOptions& options, torch::Device device);

  /// Shape: q, k, v [B·W, N, dim], q and v without their biases -> [B·W, N, dim].
  torch::Tensor attend(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       const torch::Tensor& mask);

  const WindowAttentionOptions options_;

 private:
  torch::Tensor bias();

  torch::Tensor logit_scale_, q_bias_, v_bias_;
  FixedTable coordinates_{nullptr}, positions_{nullptr};
  PositionBiasMlp cpb_mlp_{nullptr};
};

/// Swin V2's own attention.
/// Parameters: `qkv` (without bias), `proj`, and those of the base.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
class WindowCosineAttentionImpl : public CosineAttentionBaseImpl {
 public:
  explicit WindowCosineAttentionImpl(const WindowAttentionOptions& options,
                                     torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;
  std::vector<RoleMatrix> role_matrices() const override {
    return fused_role_matrices(qkv_->weight, proj_->weight, options_.heads);
  }

 private:
  Linear qkv_{nullptr}, proj_{nullptr};
};

/// The same with a manifold key in place of the linear one.
/// Parameters: `qv` (without bias), `key`, `proj`, and those of the base.
/// Shape: x [B·W, N, dim], mask [W, N, N] or undefined -> [B·W, N, dim].
/// Source: manifold key section 5, which names the model; its place before the angle is a reading.
class WindowCosineKeyAttentionImpl : public CosineAttentionBaseImpl {
 public:
  WindowCosineKeyAttentionImpl(const WindowAttentionOptions& options, const KeyChoice& choice,
                               torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& mask) override;
  std::vector<RoleMatrix> role_matrices() const override {
    return keyless_role_matrices(qv_->weight, proj_->weight, options_.heads);
  }

 private:
  Linear qv_{nullptr}, proj_{nullptr};
  ManifoldKey key_{nullptr};
};

}  // namespace abl::models
