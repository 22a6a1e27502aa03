// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/swin.h"

#include "models/attention/window_attention.h"
#include "models/layers/mlp.h"

namespace abl::models {
namespace {

/// Builds the attention that was chosen; none for `Kernel::kNone`.
struct MakeAttention {
  const WindowAttentionOptions& options;
  torch::Device device;

  WindowAttention operator()(const QkvChoice&) const {
    return new_window_attention<WindowQkvAttentionImpl>(options, device);
  }
  WindowAttention operator()(const AttentionChoice& choice) const {
    if (choice.kernel == Kernel::kNone) return nullptr;
    return new_window_attention<WindowSharedAttentionImpl>(options, choice, device);
  }
  WindowAttention operator()(const KeyChoice& choice) const {
    return new_window_attention<WindowKeyAttentionImpl>(options, choice, device);
  }
};

/// x += attention(norm1 x) in windows, x += mlp(norm2 x).
class BlockImpl : public SwinBlockImpl {
 public:
  BlockImpl(const SwinBlockPlace& place, const WindowAttentionChoice& choice, torch::Device device)
      : SwinBlockImpl{place} {
    const WindowAttentionOptions options{.dim = place.dim, .heads = place.heads, .window = place.grid.window};
    attn_ = std::visit(MakeAttention{options, device}, choice);
    if (attn_) {
      norm1_ = register_module("norm1", LayerNorm{place.dim, device});
      register_module("attn", attn_);
      register_mask(device);
    }
    norm2_ = register_module("norm2", LayerNorm{place.dim, device});
    mlp_ = register_module("mlp", Mlp{place.dim, place.mlp_dim, device});
  }

  torch::Tensor forward(const torch::Tensor& map) override {
    auto x = map;
    if (attn_) x = add_residual(x, drop(attend(attn_, norm1_(x))));
    return add_residual(x, drop(mlp_(norm2_(x))));
  }

 private:
  LayerNorm norm1_{nullptr}, norm2_{nullptr};
  WindowAttention attn_{nullptr};
  Mlp mlp_{nullptr};
};

}  // namespace

SwinImpl::SwinImpl(SwinOptions options, torch::Device device)
    : SwinTrunkImpl{sizes_of(options), NormPlace::kBefore, blocks_with<BlockImpl>(options.attention, device),
                    device},
      options_{std::move(options)} {}

}  // namespace abl::models
