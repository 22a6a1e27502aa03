// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/key_vit.h"

#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>

#include "models/attention/kernel.h"
#include "models/embedding/patches.h"
#include "models/embedding/positions.h"
#include "models/layers/recompute.h"

namespace abl::models {
namespace {

KeyVitOptions checked(KeyVitOptions options) {
  check_patches(options.image_size, options.patch);
  TORCH_CHECK_VALUE(options.classes > 0 && options.mlp_dim > 0, "a ViT with ", options.classes,
                    " classes and an MLP of width ", options.mlp_dim, "; both must be positive");
  TORCH_CHECK_VALUE(options.dim > 0 && options.heads > 0 && options.dim % options.heads == 0, options.heads,
                    " heads do not divide the width ", options.dim);
  check_recomputed(options.checkpoint_blocks, options.depth());
  return options;
}

}  // namespace

KeyAttentionImpl::KeyAttentionImpl(const KeyVitOptions& options, const std::optional<KeyChoice>& choice,
                                   torch::Device device)
    : heads_{options.heads} {
  const auto dim = options.dim;
  norm_ = register_module("norm", LayerNorm{dim, device});
  to_q_ = register_module("to_q", Linear{dim, dim, device, /*has_bias=*/false});
  to_v_ = register_module("to_v", Linear{dim, dim, device, /*has_bias=*/false});
  if (choice && choice->method != KeyMethod::kLinear) {
    const ManifoldKeyOptions key{.dim = dim, .tokens = options.tokens(), .choice = *choice};
    manifold_key_ = register_module("key", ManifoldKey{key, device});
  } else {
    linear_key_ = register_module("key", Linear{dim, dim, device, /*has_bias=*/false});
  }
  proj_ = register_module("proj", Linear{dim, dim, device});
}

torch::Tensor KeyAttentionImpl::forward(const torch::Tensor& x) {
  const auto B = x.size(0), N = x.size(1), D = x.size(2), H = heads_;
  const auto heads_of = [&](const torch::Tensor& y) {
    return y.view({B, N, H, D / H}).transpose(1, 2);  // [B, H, N, d]
  };
  const auto normalised = norm_(x);
  const auto key = manifold_key_ ? manifold_key_(normalised) : linear_key_(normalised);
  count_scaled(B * H * N * N);
  const auto y =
      attend(Kernel::kDot, heads_of(to_q_(normalised)), heads_of(key), heads_of(to_v_(normalised)));
  return proj_(y.transpose(1, 2).reshape({B, N, D}));
}

std::vector<RoleMatrix> KeyAttentionImpl::role_matrices() const {
  std::vector<RoleMatrix> matrices{{.role = kQuery, .heads = into_heads(to_q_->weight, heads_)}};
  if (linear_key_) matrices.push_back({.role = kKey, .heads = into_heads(linear_key_->weight, heads_)});
  matrices.push_back({.role = kValue, .heads = into_heads(to_v_->weight, heads_)});
  matrices.push_back({.role = kWeight, .heads = out_of_heads(proj_->weight, heads_)});
  return matrices;
}

KeyVitImpl::KeyVitImpl(KeyVitOptions options, torch::Device device)
    : options_{checked(std::move(options))}, drop_rates_{drop_rates(options_.drop_path, options_.depth())} {
  const auto dim = options_.dim, pixels = 3 * options_.patch * options_.patch;
  embed_norm1_ = register_module("embed_norm1", LayerNorm{pixels, device});
  embed_ = register_module("embed", Linear{pixels, dim, device});
  embed_norm2_ = register_module("embed_norm2", LayerNorm{dim, device});
  cls_ = register_parameter("cls", new_normal({1, 1, dim}, 1, device));
  pos_ = register_parameter("pos", new_normal({1, options_.tokens(), dim}, 1, device));
  auto attention = register_module("attn", torch::nn::ModuleList{});
  auto feed_forward = register_module("ff", torch::nn::ModuleList{});
  for (const auto& choice : options_.keys) {
    attention->push_back(attention_.emplace_back(options_, choice, device));
    feed_forward->push_back(feed_forward_.emplace_back(dim, options_.mlp_dim, device));
  }
  if (!options_.has_head) return;
  norm_ = register_module("norm", LayerNorm{dim, device});
  head_ = register_module("head", Linear{dim, options_.classes, device});
}

torch::Tensor KeyVitImpl::forward(const torch::Tensor& images) {
  check_has_head(options_.has_head);
  check_size(images, options_.image_size);
  auto x = embed_images(images);
  for (std::size_t index = 0; index < attention_.size(); ++index) x = layer(index, x);
  return head_(drop_out(norm_(x).select(1, 0), options_.dropout.head, is_training()));
}

std::vector<torch::Tensor> KeyVitImpl::maps_after(const std::vector<std::int64_t>& layers,
                                                  const torch::Tensor& images) {
  check_layers(layers, options_.depth());
  const auto mixes_tokens = [](const auto& key) { return key && key->method != KeyMethod::kLinear; };
  if (std::ranges::any_of(options_.keys, mixes_tokens)) check_size(images, options_.image_size);
  const TokenGrid grid{
      .rows = images.size(2) / options_.patch, .columns = images.size(3) / options_.patch, .leading = 1};
  return token_maps(layers, embed_images(images), grid, [&](std::int64_t index, const torch::Tensor& x) {
    return layer(static_cast<std::size_t>(index), x);
  });
}

torch::Tensor KeyVitImpl::layer(std::size_t index, const torch::Tensor& x) const {
  const auto run = [attention = attention_[index], feed_forward = feed_forward_[index],
                    rate = drop_rates_[index], training = is_training()](const torch::Tensor& in) {
    const auto y = add_residual(in, drop_path(attention(in), rate, training));
    return add_residual(y, drop_path(feed_forward(y), rate, training));
  };
  return run_block(run, x, static_cast<std::int64_t>(index) < options_.checkpoint_blocks,
                   {attention_[index].get(), feed_forward_[index].get()});
}

torch::Tensor KeyVitImpl::embed_images(const torch::Tensor& images) {
  const auto patches = embed_norm2_(embed_(embed_norm1_(patchify(images, options_.patch))));
  const auto rows = images.size(2) / options_.patch, columns = images.size(3) / options_.patch;
  const auto x = torch::cat({cls_.expand({patches.size(0), -1, -1}), patches}, 1) +
                 interpolate_positions(pos_, rows, columns);
  return drop_out(x, options_.dropout.positions, is_training());
}

}  // namespace abl::models
