// SPDX-License-Identifier: Apache-2.0
#include "models/attention/class_attention.h"

#include <cmath>

#include "models/projection/qkv_projection.h"

namespace abl::models {
namespace {

torch::Tensor class_token(const torch::Tensor& x) { return x.narrow(1, 0, 1); }
torch::Tensor patches(const torch::Tensor& x) { return x.narrow(1, 1, x.size(1) - 1); }

/// Under autocast the two may differ in type.
torch::Tensor join(const torch::Tensor& class_token, const torch::Tensor& patches) {
  return torch::cat({class_token.to(patches.scalar_type()), patches}, 1);
}

}  // namespace

ClassAttentionImpl::ClassAttentionImpl(std::int64_t dim, std::int64_t heads, torch::Device device)
    : heads_{heads} {
  check_heads(dim, heads);
  q_ = register_module("q", Linear{dim, dim, device});
  k_ = register_module("k", Linear{dim, dim, device});
  v_ = register_module("v", Linear{dim, dim, device});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor ClassAttentionImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), D = x.size(2);
  const auto cut = [&](const torch::Tensor& y) {
    return y.view({B, -1, heads_, D / heads_}).transpose(1, 2);  // [B, H, tokens, d]
  };
  // One query makes few scores, so that nothing is gained by fused attention, whose gradients are less exact.
  const auto q = cut(q_(class_token(x)));     // [B, H, 1, d]
  const auto k = cut(k_(x)), v = cut(v_(x));  // [B, H, tokens, d]
  const auto scores = q.matmul(k.mT());
  count_scaled(scores.numel());
  const auto y = (scores / std::sqrt(static_cast<double>(D / heads_))).softmax(-1).matmul(v);
  return proj_(y.transpose(1, 2).reshape({B, 1, D}));
}

ClassAttentionBlockImpl::ClassAttentionBlockImpl(const ClassAttentionBlockOptions& options,
                                                 torch::Device device)
    : tokens_norm_{options.tokens_norm} {
  const auto dim = options.dim;
  norm1_ = register_module("norm1", LayerNorm{dim, device, /*eps=*/1e-6});
  attn_ = register_module("attn", ClassAttention{dim, options.heads, device});
  norm2_ = register_module("norm2", LayerNorm{dim, device, /*eps=*/1e-6});
  mlp_ = register_module("mlp", Mlp{dim, options.mlp_dim, device});
  gamma1_ = register_parameter("gamma1", new_constant({dim}, options.eta, device));
  gamma2_ = register_parameter("gamma2", new_constant({dim}, options.eta, device));
}

torch::Tensor ClassAttentionBlockImpl::forward(const torch::Tensor& x) {
  const auto u = norm1_(x);
  auto y = add_residual(x, gamma1_ * join(attn_(u), patches(u)));
  y = tokens_norm_ ? norm2_(y) : join(norm2_(class_token(y)), patches(y));
  return add_residual(y, join(gamma2_ * mlp_(class_token(y)), patches(y)));
}

}  // namespace abl::models
