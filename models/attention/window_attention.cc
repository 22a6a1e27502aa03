// SPDX-License-Identifier: Apache-2.0
#include "models/attention/window_attention.h"

#include <map>

#include "models/attention/tiled_attention.h"
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
  show_attention(operands, added);
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

WindowKeyAttentionImpl::WindowKeyAttentionImpl(const WindowAttentionOptions& options, const KeyChoice& choice,
                                               torch::Device device)
    : BiasedWindowAttentionImpl{options, device} {
  const auto dim = options_.dim;
  qv_ = register_module("qv", Linear{dim, 2 * dim, device});
  key_ = register_module(
      "key",
      ManifoldKey{ManifoldKeyOptions{.dim = dim, .tokens = options_.tokens(), .choice = choice}, device});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor WindowKeyAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto qv = qv_(x).chunk(2, -1);
  const auto heads = options_.heads;
  const auto q = cut_heads(qv[0], heads), v = cut_heads(qv[1], heads);
  return proj_(attend(Kernel::kDot, q, cut_heads(key_(x).to(q.scalar_type()), heads), v, mask));
}

namespace {

std::string name_of(char letter) { return {static_cast<char>(letter - 'A' + 'a')}; }

AttentionChoice checked(const WindowAttentionOptions& options, AttentionChoice choice) {
  check({.dim = options.dim,
         .heads = options.heads,
         .dim_head = options.dim / options.heads,
         .choice = choice});
  return choice;
}

}  // namespace

WindowSharedAttentionImpl::WindowSharedAttentionImpl(const WindowAttentionOptions& options,
                                                     AttentionChoice choice, torch::Device device)
    : BiasedWindowAttentionImpl{options, device},
      choice_{checked(options, std::move(choice))},
      weight_is_tied_{weight_is_tied(choice_)} {
  const auto dim = options_.dim;
  weight = register_module("weight", torch::nn::ParameterDict{});
  bias = register_module("bias", torch::nn::ParameterDict{});
  for (const char letter : projections_of(choice_)) {
    weight->insert(name_of(letter), new_normal({dim, dim / choice_.groups}, 0.02, device));
    bias->insert(name_of(letter), new_constant({dim}, 0, device));
  }
  if (choice_.probe == Probe::kOutside)
    weight->insert(name_of(choice_.share[kProbe]), new_normal({dim, dim}, 0.02, device));
  if (weight_is_tied_)
    proj_bias_ = register_parameter("proj_bias", new_constant({dim}, 0, device));
  else
    proj_ = register_module("proj", Linear{dim, dim, device});
}

std::vector<RoleMatrix> WindowSharedAttentionImpl::role_matrices() const {
  return role_matrices_of(
      choice_, options_.heads, [&](Role role) { return weight->get(name_of(choice_.share[role])); },
      weight_is_tied_ ? torch::Tensor{} : proj_->weight);
}

torch::Tensor WindowSharedAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto matrix = [&](Role role) { return weight->get(name_of(choice_.share[role])); };
  std::map<char, torch::Tensor> projected;  // once for each matrix, however many roles share it
  const auto projection = [&](Role role) {  // [B·W, N, dim]
    const char letter = choice_.share[role];
    auto& y = projected[letter];
    if (!y.defined() || literal())
      y = grouped_linear(x, matrix(role), choice_.groups, choice_.layout, bias->get(name_of(letter)),
                         fused_place(choice_, role));
    return y;
  };
  const auto heads_of = [&](Role role) { return cut_heads(projection(role), options_.heads); };

  auto y = attend(choice_.kernel, heads_of(kQuery), heads_of(kKey), heads_of(kValue), mask);
  if (choice_.probe == Probe::kInside) y = y - projection(kProbe);
  if (weight_is_tied_)
    y = torch::linear(y, matrix(kWeight).t() * choice_.tied_weight_scale, proj_bias_);
  else
    y = proj_(y);
  if (choice_.probe == Probe::kOutside) y = y - torch::linear(x, matrix(kProbe));
  return y;
}

}  // namespace abl::models
