// SPDX-License-Identifier: Apache-2.0
#include "models/attention/manifold_key.h"

namespace abl::models {

ChartExpansionImpl::ChartExpansionImpl(std::int64_t dim, std::int64_t charts, torch::Device device) {
  weight_ = register_parameter("weight", new_weight({charts * dim, dim}, device));
}

torch::Tensor ChartExpansionImpl::forward(const torch::Tensor& x, const torch::Tensor& gamma) {
  const auto M = x.size(0), D = x.size(1), H = weight_.size(0) / D;
  const auto scaled = (gamma.unsqueeze(1) * weight_).view({H, D, D});
  return x.expand({H, M, D}).bmm(scaled.mT());
}

TokenMixingImpl::TokenMixingImpl(std::int64_t tokens, std::int64_t charts, ChartMixing mixing,
                                 torch::Device device)
    : tokens_{tokens}, charts_{charts}, mixing_{mixing} {
  const auto N = tokens, all = charts * tokens;
  weight_ = register_parameter("weight", mixing == ChartMixing::kDense ? new_weight({N, all, 1}, device)
                                                                       : new_weight({all, N, 1}, device));
}

torch::Tensor TokenMixingImpl::forward(const torch::Tensor& charts) {
  const auto H = charts_, N = tokens_;
  if (mixing_ == ChartMixing::kSeparate) return weight_.view({H, N, N}).bmm(charts);
  const auto joined = mixing_ == ChartMixing::kDense
                          ? weight_.view({N, H * N})
                          : weight_.view({H, N, N}).transpose(0, 1).reshape({N, H * N}) / H;
  return joined.mm(charts.flatten(0, 1)).unsqueeze(0);
}

namespace {

bool is_plain(const KeyChoice& choice) { return choice.order == ChartOrder::kPlainReshape; }

ChartMixing mixing_of(const KeyChoice& choice) {
  switch (choice.method) {
    case KeyMethod::kSimpleK:
      return ChartMixing::kDense;
    case KeyMethod::kVanillaK:
      return is_plain(choice) ? ChartMixing::kSeparate : ChartMixing::kAverage;
    case KeyMethod::kLinear:  // refused
    case KeyMethod::kSpatialK:
    case KeyMethod::kKua:
      break;
  }
  return ChartMixing::kSeparate;
}

ManifoldKeyOptions checked(const ManifoldKeyOptions& options) {
  check(options);
  return options;
}

}  // namespace

void check(const ManifoldKeyOptions& options) {
  TORCH_CHECK_VALUE(options.choice.method != KeyMethod::kLinear,
                    "the method is linear: make the key by a linear layer");
  TORCH_CHECK_VALUE(options.dim > 0 && options.tokens > 0, "a manifold key of width ", options.dim, " for ",
                    options.tokens, " tokens; both must be positive");
  TORCH_CHECK_VALUE(options.choice.charts > 0, "charts is ", options.choice.charts,
                    "; at least one chart is expected");
  TORCH_CHECK_VALUE(
      options.choice.method != KeyMethod::kSimpleK || broadcasting_of(options.choice) == Broadcasting::kNone,
      "broadcasting is chosen for SimpleK, whose convolution leaves no charts; none is expected");
}

ManifoldKeyImpl::ManifoldKeyImpl(const ManifoldKeyOptions& options, torch::Device device)
    : options_{checked(options)}, broadcasting_{broadcasting_of(options.choice)} {
  const auto& choice = options_.choice;
  const auto D = options_.dim, N = options_.tokens, H = choice.charts;
  k_ = register_module("k", ChartExpansion{D, H, device});
  gamma_ = register_parameter("gamma", new_constant({H * D}, choice.gamma, device));
  spatial_ = register_module("spatial", TokenMixing{N, H, mixing_of(choice), device});
  if (broadcasting_ != Broadcasting::kNone)
    gamma_cb_ = register_parameter("gamma_cb", new_constant({D}, choice.gamma_cb, device));
  if (choice.method == KeyMethod::kSpatialK || choice.method == KeyMethod::kKua)
    to_out_ = register_module("to_out", Linear{H * D, D, device, /*has_bias=*/false});
}

torch::Tensor ManifoldKeyImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = options_.tokens, D = options_.dim, H = options_.choice.charts;
  TORCH_CHECK_VALUE(x.size(1) == N, x.size(1), " tokens for a manifold key of ", N, " tokens");
  const auto expanded = k_(x.transpose(0, 1).reshape({N * B, D}), gamma_).view({H, N, B, D});
  const auto mixed = mix_tokens(expanded);
  if (broadcasting_ == Broadcasting::kNone) return aggregate(mixed).transpose(0, 1);
  return aggregate(broadcast_context(mixed)).transpose(0, 1) * 0.5;  // ½ of eq. 4: aggregation is linear
}

/// Shape: [H, N, B, D] -> the same, or [1, N, B, D] where the mixing has brought the charts together.
torch::Tensor ManifoldKeyImpl::mix_tokens(const torch::Tensor& charts) {
  const auto H = charts.size(0), N = charts.size(1), B = charts.size(2), D = charts.size(3);
  if (!is_plain(options_.choice)) return spatial_(charts.view({H, N, B * D})).view({-1, N, B, D});
  const auto rows = charts.transpose(0, 1).reshape({H, N, B * D});  // token after token, cut after N rows
  const auto mixed = spatial_(rows);
  return mixed.size(0) == H ? mixed.view({N, H, B, D}).transpose(0, 1) : mixed.view({1, N, B, D});
}

/// Twice eq. 4; charts that were averaged give the same mean.
torch::Tensor ManifoldKeyImpl::broadcast_context(const torch::Tensor& charts) const {
  const auto mean = broadcasting_ == Broadcasting::kOverAll
                        ? charts.mean(torch::IntArrayRef{0, 1}, /*keepdim=*/true)
                        : charts.mean(torch::IntArrayRef{0}, /*keepdim=*/true);
  return charts + (gamma_cb_ * mean).to(charts.scalar_type());
}

/// Shape: [H or 1, N, B, D] -> [N, B, D].
torch::Tensor ManifoldKeyImpl::aggregate(const torch::Tensor& charts) {
  if (!to_out_) return charts.size(0) == 1 ? charts.squeeze(0) : charts.mean(0);
  return to_out_(charts.permute({1, 2, 0, 3}).flatten(2));
}

}  // namespace abl::models
