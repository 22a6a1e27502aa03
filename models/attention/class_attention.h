// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/torch.h>

#include "models/layers.h"
#include "models/mlp.h"

namespace abl::models {

/// The class token asks, all tokens answer; without norm and residual. Its one query allows another order of
/// the products, in which no token needs a key or a value of its own:
///   K q = X (W_kᵀ q) + b_k·q,  Vᵀ p = W_v (Xᵀ p) + b_v
/// The scores are of 32 bits and more, whatever the type of the tokens.
/// Parameters: `q`, `k`, `v`, `proj`, each with bias.
/// Shape: x [B, 1 + N, dim], the class token first -> [B, 1, dim]; cost N·dim·heads beside the projections.
/// Source: XCiT section 3.3 (Global aggregation with class attention), after CaiT.
class ClassAttentionImpl : public torch::nn::Module {
 public:
  /// Throws: c10::ValueError when the heads do not divide the width.
  ClassAttentionImpl(std::int64_t dim, std::int64_t heads, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor average_values(const torch::Tensor& q, const torch::Tensor& x);
  torch::Tensor scores(const torch::Tensor& q, const torch::Tensor& x);
  torch::Tensor average_values_as_written(const torch::Tensor& q, const torch::Tensor& x);

  const std::int64_t heads_;
  Linear q_{nullptr}, k_{nullptr}, v_{nullptr}, proj_{nullptr};
};
using ClassAttention = Part<ClassAttentionImpl>;

struct ClassAttentionBlockOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  std::int64_t mlp_dim = 0;
  double eta = 1.0;         ///< where LayerScale starts
  bool tokens_norm = true;  ///< the second norm acts on all tokens, else on the class token alone
};

/// A block of class attention, with two peculiarities of the release that its weights depend on: the residual
/// of the first half also adds γ1 · LN1 x to the patch tokens, and that of the second half doubles them.
///   u = LN1 x,  x ← x + γ1 [attention(u), u_patches]
///   x ← LN2 x,  x ← x + [γ2 MLP(x_class), x_patches]
/// Shape: x [B, 1 + N, dim] -> the same.
/// Source: XCiT section 3.3; the release.
class ClassAttentionBlockImpl : public torch::nn::Module {
 public:
  explicit ClassAttentionBlockImpl(const ClassAttentionBlockOptions& options,
                                   torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  const bool tokens_norm_;
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  ClassAttention attn_{nullptr};
  Mlp mlp_{nullptr};
  torch::Tensor gamma1_, gamma2_;
};
using ClassAttentionBlock = Part<ClassAttentionBlockImpl>;

}  // namespace abl::models
