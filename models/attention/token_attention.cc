// SPDX-License-Identifier: Apache-2.0
#include "models/attention/token_attention.h"

#include "models/attention/kernel.h"

namespace abl::models {
namespace {

std::int64_t checked(std::int64_t heads, const QkvOptions& qkv) {
  check_heads(qkv.dim, heads);
  return heads;
}

}  // namespace

TokenAttentionImpl::TokenAttentionImpl(const QkvOptions& qkv, std::int64_t heads, torch::Device device)
    : heads_{checked(heads, qkv)}, qkv_{*this, qkv, device} {
  proj_ = register_module("proj", Linear{qkv.dim, qkv.dim, device});
}

torch::Tensor TokenAttentionImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = x.size(1), D = x.size(2);
  const auto qkv = qkv_(x).chunk(3, -1);  // three times [B, N, H·d]
  const auto heads_of = [&](const torch::Tensor& all) {
    return all.view({B, N, heads_, D / heads_}).transpose(1, 2);  // [B, H, N, d]
  };
  count_scaled(B * heads_ * N * N);
  const auto y = attend(Kernel::kDot, heads_of(qkv[0]), heads_of(qkv[1]), heads_of(qkv[2]));
  return proj_(y.transpose(1, 2).reshape({B, N, D}));
}

}  // namespace abl::models
