// SPDX-License-Identifier: Apache-2.0
#include "models/attention/self_attention.h"

#include "models/attention/kernel.h"

namespace abl::models {

SelfAttentionImpl::SelfAttentionImpl(std::int64_t dim, std::int64_t heads, torch::Device device,
                                     bool has_qkv_bias)
    : heads_{heads} {
  TORCH_CHECK_VALUE(dim > 0 && heads > 0 && dim % heads == 0, heads, " heads do not divide the width ", dim);
  qkv_ = register_module("qkv", Linear{dim, 3 * dim, device, has_qkv_bias});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor SelfAttentionImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = x.size(1), D = x.size(2), d = D / heads_;
  const auto qkv = qkv_(x).view({B, N, 3, heads_, d}).permute({2, 0, 3, 1, 4});  // [3, B, H, N, d]
  count_scaled(B * N * D);                                                       // the queries
  return proj_(attend(Kernel::kDot, qkv[0], qkv[1], qkv[2]).transpose(1, 2).reshape({B, N, D}));
}

}  // namespace abl::models
