// SPDX-License-Identifier: Apache-2.0
#include "models/attention/window_attention.h"

#include "models/attention/block_attention.h"
#include "models/attention/windows.h"

namespace abl::models {

void check(const WindowAttentionOptions& options) {
  TORCH_CHECK_VALUE(options.heads > 0 && options.dim > 0 && options.dim % options.heads == 0, options.heads,
                    " heads do not divide the width ", options.dim);
  TORCH_CHECK_VALUE(options.window > 0, "window is ", options.window, "; at least one token is expected");
}

torch::Tensor fused_in_windows(const Operands& operands, const torch::Tensor& added) {
  const auto all = operands.q.size(0), H = operands.q.size(1), N = operands.q.size(2), W = added.size(0);
  auto beside = operands;  // the windows of an image beside its heads: [B, W·H, N, w]
  for (auto* x : {&beside.q, &beside.k, &beside.v}) *x = x->reshape({all / W, W * H, N, x->size(3)});
  return fused_attention(beside, added.reshape({1, W * H, N, N}))
      .reshape({all, H, N, operands.v.size(3)})
      .transpose(1, 2);
}

torch::Tensor attend_in_windows(const Operands& operands, const torch::Tensor& bias,
                                const torch::Tensor& mask) {
  auto added = bias.unsqueeze(0);                         // [1, H, N, N]
  if (mask.defined()) added = added + mask.unsqueeze(1);  // [W, H, N, N]
  if (literal() || operands.q.is_cuda())
    return fused_in_windows(operands, added.to(operands.q.scalar_type()));
  return block_attention(operands, added).transpose(1, 2);
}

torch::Tensor cut_heads(const torch::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

BiasedWindowAttentionImpl::BiasedWindowAttentionImpl(const WindowAttentionOptions& options,
                                                     torch::Device device)
    : options_{options} {
  check(options_);
  const auto places = 2 * options_.window - 1;
  table_ = register_parameter("relative_position_bias_table",
                              new_normal({places * places, options_.heads}, 0.02, device));
  positions_ =
      register_module("relative_position_index", FixedTable{relative_positions(options_.window, device)});
}

torch::Tensor BiasedWindowAttentionImpl::attend(Kernel kernel, const torch::Tensor& q, const torch::Tensor& k,
                                                const torch::Tensor& v, const torch::Tensor& mask) const {
  const auto N = options_.tokens();
  count_scaled(q.numel());  // Swin scales the queries
  const auto bias = table_.index({positions_->table}).view({N, N, -1}).permute({2, 0, 1});  // [H, N, N]
  return attend_in_windows(operands_of(kernel, q, k, v), bias, mask).reshape({q.size(0), N, options_.dim});
}

WindowQkvAttentionImpl::WindowQkvAttentionImpl(const WindowAttentionOptions& options, torch::Device device)
    : BiasedWindowAttentionImpl{options, device} {
  qkv_ = register_module("qkv", Linear{options_.dim, 3 * options_.dim, device});
  proj_ = register_module("proj", Linear{options_.dim, options_.dim, device});
}

torch::Tensor WindowQkvAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto qkv = qkv_(x).chunk(3, -1);
  const auto heads = options_.heads;
  return proj_(attend(Kernel::kDot, cut_heads(qkv[0], heads), cut_heads(qkv[1], heads),
                      cut_heads(qkv[2], heads), mask));
}

}  // namespace abl::models
