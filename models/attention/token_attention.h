// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include "models/projection/qkv_projection.h"

namespace abl::models {

/// The usual attention of a vision transformer, without norm and residual, of any kind of projection to
/// queries, keys and values.
///   softmax(Q Kᵀ / √d) V in each head, then `proj`
/// Parameters: `qkv`, `proj`.
/// Shape: x [B, N, dim] -> [B, N, dim]; cost quadratic in N.
/// Source: XCiT section 3.1, SNE eq. 1, manifold key eq. 1.
class TokenAttentionImpl : public torch::nn::Module, public RoleMatrices {
 public:
  /// Throws: c10::ValueError when the heads do not divide the width or the embedding has no meaning.
  TokenAttentionImpl(const QkvOptions& qkv, std::int64_t heads, torch::Device device = torch::kCPU);
  torch::Tensor forward(const torch::Tensor& x);
  std::vector<RoleMatrix> role_matrices() const override { return qkv_.role_matrices(proj_->weight, heads_); }

 private:
  const std::int64_t heads_;
  QkvProjection qkv_;
  Linear proj_{nullptr};
};
using TokenAttention = Part<TokenAttentionImpl>;

}  // namespace abl::models
