// SPDX-License-Identifier: Apache-2.0
#include "models/attention/window_cosine_attention.h"

#include <torch/nn/functional/normalization.h>

#include <algorithm>
#include <cmath>

#include "models/attention/windows.h"

namespace abl::models {
namespace {

/// Every difference of two places in a window, row and column, on a logarithmic scale: sign(z) log8(1 + |z|),
/// z from -8 to 8 in a window of the side that the weights are of, and further in a larger one.
/// Shape: [(2·window - 1)², 2].
/// Source: Swin V2 eq. 4; the scale of the release.
torch::Tensor log_coordinates(const WindowAttentionOptions& options, torch::Device device) {
  const auto reach = options.window - 1, places = 2 * options.window - 1;
  const auto usual = (options.pretrained_window > 0 ? options.pretrained_window : options.window) - 1;
  const auto z = torch::arange(-reach, reach + 1, torch::kFloat) * 8.0 /
                 static_cast<double>(std::max<std::int64_t>(usual, 1));
  const auto scaled = z.sign() * (z.abs() + 1.0).log2() / 3.0;
  const auto rows = scaled.unsqueeze(1).expand({places, places}), columns = scaled.expand({places, places});
  return torch::stack({rows.flatten(), columns.flatten()}, 1).to(device);
}

}  // namespace

PositionBiasMlpImpl::PositionBiasMlpImpl(std::int64_t heads, torch::Device device) {
  constexpr std::int64_t kHidden = 512;
  fc1_ = register_module("0", Linear{2, kHidden, device});
  fc2_ = register_module("2", Linear{kHidden, heads, device, /*has_bias=*/false});
}

torch::Tensor PositionBiasMlpImpl::forward(const torch::Tensor& x) { return fc2_(torch::relu(fc1_(x))); }

CosineAttentionBaseImpl::CosineAttentionBaseImpl(const WindowAttentionOptions& options, torch::Device device)
    : options_{options} {
  check(options_);
  const auto dim = options_.dim;
  logit_scale_ =
      register_parameter("logit_scale", new_constant({options_.heads, 1, 1}, std::log(10.0), device));
  cpb_mlp_ = register_module("cpb_mlp", PositionBiasMlp{options_.heads, device});
  q_bias_ = register_parameter("q_bias", new_constant({dim}, 0, device));
  v_bias_ = register_parameter("v_bias", new_constant({dim}, 0, device));
  coordinates_ = register_module("relative_coords_table", FixedTable{log_coordinates(options_, device)});
  positions_ =
      register_module("relative_position_index", FixedTable{relative_positions(options_.window, device)});
}

/// Shape: [H, N, N].
torch::Tensor CosineAttentionBaseImpl::bias() {
  const auto N = options_.tokens();
  const auto coordinates = coordinates_->table.to(logit_scale_.scalar_type());
  const auto table = torch::sigmoid(cpb_mlp_(coordinates)) * 16.0;  // [(2·window - 1)², H]
  return table.index({positions_->table}).view({N, N, -1}).permute({2, 0, 1});
}

torch::Tensor CosineAttentionBaseImpl::attend(const torch::Tensor& q, const torch::Tensor& k,
                                              const torch::Tensor& v, const torch::Tensor& mask) {
  const auto type = v.scalar_type();
  const auto heads_of = [&](const torch::Tensor& x) { return cut_heads(x, options_.heads); };
  const auto unit = [&](const torch::Tensor& x) {
    return torch::nn::functional::normalize(heads_of(x),
                                            torch::nn::functional::NormalizeFuncOptions().dim(-1));
  };
  const auto factor = logit_scale_.clamp_max(std::log(100.0)).exp();
  const auto y = attend_in_windows({.q = (unit(q + q_bias_.to(type)) * factor).to(type),
                                    .k = unit(k).to(type),
                                    .v = heads_of(v + v_bias_.to(type)),
                                    .scale = 1.0},
                                   bias(), mask);
  return y.reshape(v.sizes());
}

WindowCosineAttentionImpl::WindowCosineAttentionImpl(const WindowAttentionOptions& options,
                                                     torch::Device device)
    : CosineAttentionBaseImpl{options, device} {
  const auto dim = options_.dim;
  qkv_ = register_module("qkv", Linear{dim, 3 * dim, device, /*has_bias=*/false});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor WindowCosineAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto qkv = qkv_(x).chunk(3, -1);
  return proj_(attend(qkv[0], qkv[1], qkv[2], mask));
}

WindowCosineKeyAttentionImpl::WindowCosineKeyAttentionImpl(const WindowAttentionOptions& options,
                                                           const KeyChoice& choice, torch::Device device)
    : CosineAttentionBaseImpl{options, device} {
  const auto dim = options_.dim;
  qv_ = register_module("qv", Linear{dim, 2 * dim, device, /*has_bias=*/false});
  key_ = register_module(
      "key",
      ManifoldKey{ManifoldKeyOptions{.dim = dim, .tokens = options_.tokens(), .choice = choice}, device});
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor WindowCosineKeyAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  const auto qv = qv_(x).chunk(2, -1);
  return proj_(attend(qv[0], key_(x), qv[1], mask));
}

}  // namespace abl::models
