// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/swin_v2.h"

#include <torch/utils.h>

#include "models/attention/window_cosine_attention.h"
#include "models/layers/mlp.h"

namespace abl::models {
namespace {

LayerNorm norm_from_zero(std::int64_t dim, torch::Device device) {
  LayerNorm norm{dim, device};
  const torch::NoGradGuard no_grad;
  norm->weight.zero_();
  return norm;
}

/// Builds the attention that was chosen.
struct MakeCosineAttention {
  const WindowAttentionOptions& options;
  torch::Device device;

  WindowAttention operator()(const QkvChoice&) const {
    return new_window_attention<WindowCosineAttentionImpl>(options, device);
  }
  WindowAttention operator()(const KeyChoice& choice) const {
    return new_window_attention<WindowCosineKeyAttentionImpl>(options, choice, device);
  }
};

/// x += norm1 attention(x) in windows, x += norm2 mlp(x).
class CosineBlockImpl : public SwinBlockImpl {
 public:
  CosineBlockImpl(const SwinBlockPlace& place, const CosineAttentionChoice& choice, torch::Device device)
      : SwinBlockImpl{place} {
    const WindowAttentionOptions options{.dim = place.dim,
                                         .heads = place.heads,
                                         .window = place.grid.window,
                                         .pretrained_window = place.pretrained_window};
    attn_ = register_module("attn", std::visit(MakeCosineAttention{options, device}, choice));
    norm1_ = register_module("norm1", norm_from_zero(place.dim, device));
    mlp_ = register_module("mlp", Mlp{place.dim, place.mlp_dim, device});
    norm2_ = register_module("norm2", norm_from_zero(place.dim, device));
    register_mask(device);
  }

  torch::Tensor forward(const torch::Tensor& map) override {
    const auto x = add_residual(map, drop(norm1_(attend(attn_, map))));
    return add_residual(x, drop(norm2_(mlp_(x))));
  }

 private:
  WindowAttention attn_{nullptr};
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  Mlp mlp_{nullptr};
};

SwinSizes sizes_of_version_2(const SwinV2Options& options) {
  auto sizes = sizes_of(options);
  sizes.pretrained_window = options.pretrained_window;
  return sizes;
}

}  // namespace

SwinV2Impl::SwinV2Impl(SwinV2Options options, torch::Device device)
    : SwinTrunkImpl{sizes_of_version_2(options), NormPlace::kAfter,
                    blocks_with<CosineBlockImpl>(options.attention, device), device},
      options_{std::move(options)} {}

}  // namespace abl::models
