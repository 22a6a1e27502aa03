// SPDX-License-Identifier: Apache-2.0
#include "models/attention/xcit_attention.h"

#include <ATen/autocast_mode.h>

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

torch::Tensor widened(const torch::Tensor& x) {
  return x.to(torch::promote_types(x.scalar_type(), torch::kFloat));
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
  const auto q =
      q_(class_token(x)).view({B, heads_, D / heads_}) / std::sqrt(static_cast<double>(D / heads_));
  const auto y = literal() ? average_values_as_written(q, x) : average_values(q, x);  // [B, H, d]
  return proj_(y.reshape({B, 1, D}));
}

torch::Tensor ClassAttentionImpl::average_values(const torch::Tensor& q, const torch::Tensor& x) {
  const auto D = x.size(2), H = heads_, d = D / H;
  const auto weights = scores(q, x).softmax(-1);  // [B, H, tokens]
  if (Observer* observer = attention_observer()) observer->attention(weights.unsqueeze(2));
  const auto p = weights.to(x.scalar_type());
  const auto mean = p.matmul(x).transpose(0, 1);  // Xᵀ p: [H, B, D]
  return mean.matmul(v_->weight.view({H, d, D}).mT()).transpose(0, 1) + v_->bias.view({H, d});
}

/// Without autocast, which would round them to 16 bits.
torch::Tensor ClassAttentionImpl::scores(const torch::Tensor& q, const torch::Tensor& x) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  const auto D = x.size(2), H = heads_, d = D / H;
  const auto wide = widened(q);
  const auto weight = widened(k_->weight).view({H, d, D}), bias = widened(k_->bias).view({H, d});
  const auto asked = wide.transpose(0, 1).matmul(weight).transpose(0, 1);  // W_kᵀ q: [B, H, D]
  const auto constant = (wide * bias).sum(-1, /*keepdim=*/true);           // b_k·q: [B, H, 1]
  return asked.matmul(widened(x).mT()) + constant;                         // [B, H, tokens]
}

torch::Tensor ClassAttentionImpl::average_values_as_written(const torch::Tensor& q, const torch::Tensor& x) {
  const auto cut = [&](const torch::Tensor& y) {
    return y.view({y.size(0), y.size(1), heads_, -1}).transpose(1, 2);  // [B, H, tokens, d]
  };
  const auto scores = q.unsqueeze(2).matmul(cut(k_(x)).mT());  // [B, H, 1, tokens]
  count_scaled(scores.numel());
  return scores.softmax(-1).matmul(cut(v_(x))).squeeze(2);
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

namespace {

/// Of each channel, at least in single precision; never quite 0, for it divides.
/// Shape: [B, heads, N, d] -> [B, heads, d].
torch::Tensor length_along_tokens(const torch::Tensor& x) {
  const auto type = x.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  return torch::linalg_vector_norm(x, 2, /*dim=*/{-2}, /*keepdim=*/false, type).clamp_min(1e-12);
}

/// Of unit length along the tokens.
torch::Tensor normalised(const torch::Tensor& x) {
  return (x / length_along_tokens(x).unsqueeze(-2)).to(x.scalar_type());
}

CrossCovarianceOptions checked(const CrossCovarianceOptions& options) {
  check_heads(options.dim, options.heads);
  return options;
}

}  // namespace

CrossCovarianceImpl::CrossCovarianceImpl(const CrossCovarianceOptions& options, torch::Device device)
    : options_{checked(options)},
      qkv_{*this,
           {.dim = options.dim, .embedding = options.choice.embedding, .codes = options.codes},
           device} {
  const auto& choice = options_.choice;
  proj_ = register_module("proj", Linear{options_.dim, options_.dim, device});
  if (choice.learned_temperature)
    temperature_ =
        register_parameter("temperature", new_constant({options_.heads, 1, 1}, choice.temperature, device));
}

torch::Tensor CrossCovarianceImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = x.size(1), D = x.size(2), H = options_.heads;
  const auto heads = qkv_(x).view({B, N, 3, H, D / H}).permute({2, 0, 3, 1, 4}).contiguous();
  const auto qkv = heads.unbind();                            // three times [B, H, N, d]
  const auto y = qkv[2].matmul(mixing(qkv[0], qkv[1]).mT());  // [B, H, N, d]
  return proj_(y.transpose(1, 2).reshape({B, N, D}));
}

torch::Tensor CrossCovarianceImpl::mixing(const torch::Tensor& queries, const torch::Tensor& keys) const {
  const auto& choice = options_.choice;
  // a sum over thousands of tokens passes what float16 holds
  const bool before = choice.l2_norm && queries.scalar_type() == torch::kHalf;
  auto scores = before ? normalised(queries).mT().matmul(normalised(keys)) : queries.mT().matmul(keys);
  if (choice.l2_norm && !before)
    scores = scores / (length_along_tokens(queries).unsqueeze(-1) * length_along_tokens(keys).unsqueeze(-2));
  count_scaled(scores.numel());
  if (temperature_.defined())
    scores = scores * temperature_;
  else if (choice.temperature != 1.0)
    scores = scores * choice.temperature;
  return scores.softmax(-1).to(queries.scalar_type());
}

}  // namespace abl::models
