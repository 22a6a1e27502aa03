// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/choices/xcit.h"
#include "models/layers/layers.h"
#include "models/layers/mlp.h"
#include "models/projection/qkv_projection.h"

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

struct CrossCovarianceOptions {
  std::int64_t dim = 0;
  std::int64_t heads = 0;
  Codes codes{nullptr};  ///< those of the model, where the embedding uses such
  XcitChoice choice;     ///< of a block whose attention runs over channels
};

/// Cross-covariance attention (XCA), without norm and residual: channels, not tokens, attend to each other.
///   V softmax(K̂ᵀ Q̂ / τ) in each head, K̂ and Q̂ of unit length along the tokens
/// The lengths divide the scores, which are few, and not the queries and keys; in float16 the latter, for the
/// scores of channels that are not normalised yet pass its largest number, 65504.
/// Parameters: `qkv`, `proj`, `temperature` [heads, 1, 1] where it is learned.
/// Shape: x [B, N, dim] -> [B, N, dim]; cost linear in N.
/// Source: XCiT eq. 1; the temperature as a factor for each head: the release.
class CrossCovarianceImpl : public torch::nn::Module, public RoleMatrices {
 public:
  /// Throws: c10::ValueError when the heads do not divide the width or the embedding has no meaning.
  explicit CrossCovarianceImpl(const CrossCovarianceOptions& options, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<RoleMatrix> role_matrices() const override {
    return qkv_.role_matrices(proj_->weight, options_.heads);
  }

  /// How much of each value channel goes into each output channel: along the last dimension it sums to one.
  /// Shape: queries, keys [B, heads, N, d] -> [B, heads, d outputs, d values].
  torch::Tensor mixing(const torch::Tensor& queries, const torch::Tensor& keys) const;

 private:
  const CrossCovarianceOptions options_;
  QkvProjection qkv_;
  Linear proj_{nullptr};
  torch::Tensor temperature_;  ///< undefined where it is not learned
};
using CrossCovariance = Part<CrossCovarianceImpl>;

}  // namespace abl::models
