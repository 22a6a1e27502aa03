// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/vit.h"

#include <torch/nn/modules/container/modulelist.h>

#include "models/embedding/patches.h"
#include "models/embedding/positions.h"
#include "models/layers/recompute.h"

namespace abl::models {
namespace {

constexpr double kEps = 1e-6;  // of every layer norm

VitOptions checked(const VitOptions& options) {
  check_patches(options.image_size, options.patch);
  TORCH_CHECK_VALUE(options.classes >= 0 && options.depth >= 0 && options.mlp_ratio > 0, "a ViT with ",
                    options.classes, " classes, ", options.depth, " layers and an MLP of ", options.mlp_ratio,
                    " widths; expected at least 0, at least 0 and more than 0");
  TORCH_CHECK_VALUE(options.dim > 0 && options.heads > 0 && options.dim % options.heads == 0, options.heads,
                    " heads do not divide the width ", options.dim);
  TORCH_CHECK_VALUE(options.layer_scale >= 0, "a ViT with a LayerScale of ", options.layer_scale,
                    "; expected 0 (none) or more");
  return options;
}

}  // namespace

VitBlockImpl::VitBlockImpl(const VitOptions& options, std::int64_t layer, torch::Device device,
                           double drop_rate)
    : drop_rate_{drop_rate} {
  const auto dim = options.dim;
  norm1_ = register_module("norm1", LayerNorm{dim, device, kEps});
  if (options.plugin.file) {
    plugged_ = {options.plugin, AttentionSite{.dim = dim,
                                              .heads = options.heads,
                                              .rows = options.image_size / options.patch,
                                              .leading_tokens = options.prefix(),
                                              .layer = layer,
                                              .depth = options.depth,
                                              .device = device}};
    register_module("attn", plugged_.ptr());
  } else {
    attn_ = register_module(
        "attn", TokenAttention{QkvOptions{.dim = dim, .bias = options.has_qkv_bias}, options.heads, device});
  }
  norm2_ = register_module("norm2", LayerNorm{dim, device, kEps});
  mlp_ = register_module("mlp", Mlp{dim, options.mlp_ratio * dim, device});
  if (options.layer_scale == 0) return;
  ls1_ = register_module("ls1", LayerScale{dim, options.layer_scale, device});
  ls2_ = register_module("ls2", LayerScale{dim, options.layer_scale, device});
}

torch::Tensor VitBlockImpl::forward(const torch::Tensor& x) {
  const auto scaled = [](const LayerScale& scale, const torch::Tensor& branch) {
    return scale ? scale(branch) : branch;
  };
  const auto in = norm1_(x);
  const auto mixed = scaled(ls1_, plugged_ ? plugged_(in) : attn_(in));
  const auto y = add_residual(x, drop_path(mixed, drop_rate_, is_training()));
  return add_residual(y, drop_path(scaled(ls2_, mlp_(norm2_(y))), drop_rate_, is_training()));
}

VitImpl::VitImpl(const VitOptions& options, torch::Device device) : options_{checked(options)} {
  check_recomputed(options_.checkpoint_blocks, options_.depth);
  const auto dim = options_.dim;
  cls_token_ = register_parameter("cls_token", new_normal({1, 1, dim}, 1e-6, device));
  pos_embed_ = register_parameter("pos_embed", new_normal({1, options_.positions(), dim}, 0.02, device));
  if (options_.has_distillation_token)
    dist_token_ = register_parameter("dist_token", new_normal({1, 1, dim}, 0.02, device));
  patch_embed_ = register_module("patch_embed", PatchEmbed{options_.image_size, options_.patch, dim, device});
  auto blocks = register_module("blocks", torch::nn::ModuleList{});
  for (const auto drop_rate : drop_rates(options_.drop_path, options_.depth))
    blocks->push_back(
        blocks_.emplace_back(options_, static_cast<std::int64_t>(blocks_.size()), device, drop_rate));
  if (options_.has_head) {
    norm_ = register_module("norm", LayerNorm{dim, device, kEps});
  }
  if (options_.has_head && options_.classes > 0) {
    head_ = register_module("head", Linear{dim, options_.classes, device});
    if (options_.has_distillation_token)
      head_dist_ = register_module("head_dist", Linear{dim, options_.classes, device});
  }
  if (is_started(device)) start_linear_layers(*this);
}

torch::Tensor VitImpl::tokens_of(torch::Tensor patches, std::int64_t rows, std::int64_t columns) {
  const auto leading = options_.has_class_position ? options_.prefix() : 0;
  const auto positions = interpolate_positions(pos_embed_, rows, columns, leading);
  if (!options_.has_class_position) patches = patches + positions;
  std::vector<torch::Tensor> tokens{cls_token_.expand({patches.size(0), -1, -1})};
  if (dist_token_.defined()) tokens.push_back(dist_token_.expand({patches.size(0), -1, -1}));
  tokens.push_back(patches);
  const auto x = torch::cat(tokens, 1);
  return drop_out(options_.has_class_position ? x + positions : x, options_.dropout.positions, is_training());
}

torch::Tensor VitImpl::run(std::int64_t layer, const torch::Tensor& x) const {
  return run_block(blocks_[static_cast<std::size_t>(layer)], x, layer < options_.checkpoint_blocks);
}

Answers VitImpl::answer(const torch::Tensor& images) {
  check_has_head(options_.has_head);
  const auto side = options_.image_size / options_.patch;
  auto x = tokens_of(patch_embed_(images), side, side);
  for (std::int64_t layer = 0; layer < options_.depth; ++layer) x = run(layer, x);
  x = norm_(x);
  const auto token = [&](std::int64_t place) {
    return drop_out(x.select(1, place), options_.dropout.head, is_training());
  };
  if (!head_) return {x.select(1, 0)};
  Answers answers{head_(token(0))};
  if (head_dist_) answers.distilled = head_dist_(token(1));
  return answers;
}

std::vector<torch::Tensor> VitImpl::maps_after(const std::vector<std::int64_t>& layers,
                                               const torch::Tensor& images) {
  check_layers(layers, options_.depth);
  if (options_.plugin.file) check_size(images, options_.image_size);
  const auto map = patch_embed_->map_of(images);
  const TokenGrid grid{.rows = map.size(2), .columns = map.size(3), .leading = options_.prefix()};
  return token_maps(layers, tokens_of(map.flatten(2).mT(), grid.rows, grid.columns), grid,
                    [&](std::int64_t layer, const torch::Tensor& x) { return run(layer, x); });
}

torch::Tensor VitImpl::features(const torch::Tensor& images, const FeatureChoice& choice) {
  check_has_head(options_.has_head);
  TORCH_CHECK_VALUE(choice.blocks >= 1 && choice.blocks <= options_.depth, "features of the last ",
                    choice.blocks, " blocks of ", options_.depth);
  if (options_.plugin.file) check_size(images, options_.image_size);
  const auto map = patch_embed_->map_of(images);
  auto x = tokens_of(map.flatten(2).mT(), map.size(2), map.size(3));
  std::vector<torch::Tensor> parts;
  for (std::int64_t layer = 0; layer < options_.depth; ++layer) {
    x = run(layer, x);
    if (layer >= options_.depth - choice.blocks) parts.push_back(norm_(x).select(1, 0));
  }
  if (choice.has_patch_mean)
    parts.push_back(norm_(x).narrow(1, options_.prefix(), map.size(2) * map.size(3)).mean(1));
  return parts.size() == 1 ? parts.front() : torch::cat(parts, 1);
}

}  // namespace abl::models
