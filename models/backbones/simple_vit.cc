// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/simple_vit.h"

#include <torch/nn/modules/container/moduledict.h>
#include <torch/nn/modules/container/modulelist.h>

#include <string>

#include "models/embedding/patches.h"
#include "models/embedding/positions.h"
#include "models/layers/recompute.h"

namespace abl::models {
namespace {

void check(const SimpleVitOptions& options) {
  check_patches(options.image_size, options.patch);
  TORCH_CHECK_VALUE(options.classes > 0 && options.depth >= 0 && options.mlp_dim > 0, "a simple ViT with ",
                    options.classes, " classes, ", options.depth, " layers and an MLP of width ",
                    options.mlp_dim, "; none may be negative, classes and MLP not 0");
  TORCH_CHECK_VALUE(static_cast<std::int64_t>(options.attention.size()) == options.depth,
                    options.attention.size(), " attention choices for ", options.depth,
                    " layers; one for each layer is expected");
}

}  // namespace

SimpleVitImpl::SimpleVitImpl(SimpleVitOptions options, torch::Device device) : options_{std::move(options)} {
  check(options_);
  check_recomputed(options_.checkpoint_blocks, options_.depth);
  drop_rates_ = drop_rates(options_.drop_path, options_.depth);
  const auto dim = options_.dim, rows = options_.image_size / options_.patch;
  const auto pixels = 3 * options_.patch * options_.patch;
  embed_norm1_ = register_module("embed_norm1", LayerNorm{pixels, device});
  embed_ = register_module("embed", Linear{pixels, dim, device});
  embed_norm2_ = register_module("embed_norm2", LayerNorm{dim, device});
  positions_ = register_module("pos", FixedTable{sincos_2d(rows, rows, dim, device)});

  auto attention = register_module("attn", torch::nn::ModuleDict{});  // by layer number: some have none
  auto feed_forward = register_module("ff", torch::nn::ModuleList{});
  for (const auto& choice : options_.attention) {
    const auto layer = attention_.size();
    attention_.emplace_back(nullptr);
    if (choice.kernel != Kernel::kNone) {
      attention_.back() = SharedAttention{
          AttentionOptions{
              .dim = dim, .heads = options_.heads, .dim_head = options_.dim_head, .choice = choice},
          device};
      attention->update({{std::to_string(layer), attention_.back().ptr()}});
    }
    feed_forward_.emplace_back(dim, options_.mlp_dim, device);
    feed_forward->push_back(feed_forward_.back());
  }
  if (!options_.has_head) return;
  head_norm_ = register_module("head_norm", LayerNorm{dim, device});
  head_ = register_module("head", Linear{dim, options_.classes, device});
}

torch::Tensor SimpleVitImpl::forward(const torch::Tensor& images) {
  check_has_head(options_.has_head);
  check_size(images, options_.image_size);
  auto x = drop_out(embed_images(images), options_.dropout.positions, is_training());
  for (std::int64_t index = 0; index < options_.depth; ++index) x = layer(index, x);
  return head_(drop_out(head_norm_(x.mean(1)), options_.dropout.head, is_training()));
}

std::vector<torch::Tensor> SimpleVitImpl::maps_after(const std::vector<std::int64_t>& layers,
                                                     const torch::Tensor& images) {
  check_layers(layers, options_.depth);
  const TokenGrid grid{.rows = images.size(2) / options_.patch, .columns = images.size(3) / options_.patch};
  const auto x = drop_out(embed_images(images), options_.dropout.positions, is_training());
  return token_maps(layers, x, grid,
                    [&](std::int64_t index, const torch::Tensor& tokens) { return layer(index, tokens); });
}

torch::Tensor SimpleVitImpl::embed_images(const torch::Tensor& images) {
  const auto patches = embed_norm2_(embed_(embed_norm1_(patchify(images, options_.patch))));
  return patches + positions(images.size(2) / options_.patch, images.size(3) / options_.patch);
}

torch::Tensor SimpleVitImpl::positions(std::int64_t rows, std::int64_t columns) const {
  const auto usual = options_.image_size / options_.patch;
  const auto& table = positions_->table;
  const auto own =
      rows == usual && columns == usual ? table : sincos_2d(rows, columns, options_.dim, table.device());
  return own.to(embed_norm2_->weight.scalar_type());
}

torch::Tensor SimpleVitImpl::layer(std::int64_t index, const torch::Tensor& x) {
  const auto attention = attention_.at(index);
  const auto feed_forward = feed_forward_.at(index);
  const auto run = [attention, feed_forward, rate = drop_rates_.at(static_cast<std::size_t>(index)),
                    training = is_training()](const torch::Tensor& in) {
    const auto y = attention ? add_residual(in, drop_path(attention(in), rate, training)) : in;
    return add_residual(y, drop_path(feed_forward(y), rate, training));
  };
  return run_block(run, x, index < options_.checkpoint_blocks,
                   {attention ? attention.get() : nullptr, feed_forward.get()});
}

}  // namespace abl::models
