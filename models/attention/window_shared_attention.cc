// SPDX-License-Identifier: Apache-2.0
#include "models/attention/window_shared_attention.h"

#include <map>

namespace abl::models {
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
