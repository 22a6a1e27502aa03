// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/vit.h"

#include <torch/nn/modules/container/modulelist.h>

#include "models/embedding/patches.h"
#include "models/layers/recompute.h"

namespace abl::models {
namespace {

constexpr double kEps = 1e-6;  // of every layer norm

VitOptions checked(const VitOptions& options) {
  check_patches(options.image_size, options.patch);
  TORCH_CHECK_VALUE(options.classes > 0 && options.depth >= 0 && options.mlp_ratio > 0, "a ViT with ",
                    options.classes, " classes, ", options.depth, " layers and an MLP of ", options.mlp_ratio,
                    " widths; none may be negative, classes and MLP not 0");
  TORCH_CHECK_VALUE(options.dim > 0 && options.heads > 0 && options.dim % options.heads == 0, options.heads,
                    " heads do not divide the width ", options.dim);
  return options;
}

}  // namespace

VitBlockImpl::VitBlockImpl(const VitOptions& options, torch::Device device, double drop_rate)
    : drop_rate_{drop_rate} {
  const auto dim = options.dim;
  norm1_ = register_module("norm1", LayerNorm{dim, device, kEps});
  attn_ = register_module(
      "attn", TokenAttention{QkvOptions{.dim = dim, .bias = options.has_qkv_bias}, options.heads, device});
  norm2_ = register_module("norm2", LayerNorm{dim, device, kEps});
  mlp_ = register_module("mlp", Mlp{dim, options.mlp_ratio * dim, device});
}

torch::Tensor VitBlockImpl::forward(const torch::Tensor& x) {
  const auto y = add_residual(x, drop_path(attn_(norm1_(x)), drop_rate_, is_training()));
  return add_residual(y, drop_path(mlp_(norm2_(y)), drop_rate_, is_training()));
}

VitImpl::VitImpl(const VitOptions& options, torch::Device device) : options_{checked(options)} {
  check_recomputed(options_.checkpoint_blocks, options_.depth);
  const auto dim = options_.dim;
  cls_token_ = register_parameter("cls_token", new_normal({1, 1, dim}, 1e-6, device));
  pos_embed_ = register_parameter("pos_embed", new_normal({1, options_.tokens(), dim}, 0.02, device));
  patch_embed_ = register_module("patch_embed", PatchEmbed{options_.image_size, options_.patch, dim, device});
  auto blocks = register_module("blocks", torch::nn::ModuleList{});
  for (const auto drop_rate : drop_rates(options_.drop_path, options_.depth))
    blocks->push_back(blocks_.emplace_back(options_, device, drop_rate));
  norm_ = register_module("norm", LayerNorm{dim, device, kEps});
  head_ = register_module("head", Linear{dim, options_.classes, device});
  if (is_started(device)) start_linear_layers(*this);
}

torch::Tensor VitImpl::forward(const torch::Tensor& images) {
  const auto patches = patch_embed_(images);
  auto x = torch::cat({cls_token_.expand({patches.size(0), -1, -1}), patches}, 1) + pos_embed_;
  for (std::int64_t layer = 0; layer < options_.depth; ++layer)
    x = run_block(blocks_[static_cast<std::size_t>(layer)], x, layer < options_.checkpoint_blocks);
  return head_(norm_(x).select(1, 0));
}

}  // namespace abl::models
