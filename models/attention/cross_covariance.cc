// SPDX-License-Identifier: Apache-2.0
#include "models/attention/cross_covariance.h"

namespace abl::models {
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
  check_heads(options.qkv.dim, options.heads);
  return options;
}

}  // namespace

CrossCovarianceImpl::CrossCovarianceImpl(const CrossCovarianceOptions& options, torch::Device device)
    : options_{checked(options)}, qkv_{*this, options.qkv, device} {
  proj_ = register_module("proj", Linear{options_.qkv.dim, options_.qkv.dim, device});
  if (options_.learned_temperature)
    temperature_ =
        register_parameter("temperature", new_constant({options_.heads, 1, 1}, options_.temperature, device));
}

torch::Tensor CrossCovarianceImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = x.size(1), D = x.size(2), H = options_.heads;
  const auto heads = qkv_(x).view({B, N, 3, H, D / H}).permute({2, 0, 3, 1, 4}).contiguous();
  const auto qkv = heads.unbind();                            // three times [B, H, N, d]
  const auto y = qkv[2].matmul(mixing(qkv[0], qkv[1]).mT());  // [B, H, N, d]
  return proj_(y.transpose(1, 2).reshape({B, N, D}));
}

torch::Tensor CrossCovarianceImpl::mixing(const torch::Tensor& queries, const torch::Tensor& keys) const {
  // a sum over thousands of tokens passes what float16 holds
  const bool before = options_.l2_norm && queries.scalar_type() == torch::kHalf;
  auto scores = before ? normalised(queries).mT().matmul(normalised(keys)) : queries.mT().matmul(keys);
  if (options_.l2_norm && !before)
    scores = scores / (length_along_tokens(queries).unsqueeze(-1) * length_along_tokens(keys).unsqueeze(-2));
  count_scaled(scores.numel());
  if (temperature_.defined())
    scores = scores * temperature_;
  else if (options_.temperature != 1.0)
    scores = scores * options_.temperature;
  return scores.softmax(-1).to(queries.scalar_type());
}

}  // namespace abl::models
