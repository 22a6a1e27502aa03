// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/xcit.h"

#include <torch/nn/modules/container/modulelist.h>

#include "models/embedding/patches.h"
#include "models/layers/recompute.h"

namespace abl::models {

LocalPatchInteractionImpl::LocalPatchInteractionImpl(std::int64_t dim, torch::Device device) {
  const Conv2dOptions depth_wise{.in = dim, .out = dim, .kernel = 3, .padding = 1, .groups = dim};
  conv1_ = register_module("conv1", Conv2d{depth_wise, device});
  bn_ = register_module("bn", BatchNorm2d{dim, device});
  conv2_ = register_module("conv2", Conv2d{depth_wise, device});
}

torch::Tensor LocalPatchInteractionImpl::forward(const torch::Tensor& x, std::int64_t rows,
                                                 std::int64_t columns) {
  const auto B = x.size(0), D = x.size(2);
  const auto map = x.mT().reshape({B, D, rows, columns});
  return conv2_(bn_(torch::gelu(conv1_(map)))).flatten(2).mT();  // [B, N, D]
}

namespace {

/// The first embedding whose codes are those of the model; none where no block has such.
const EmbeddingChoice* model_codes(const XcitOptions& options) {
  for (const auto& block : options.blocks)
    if (block.embedding && block.embedding->code_size > 0 && block.embedding->codes_over_blocks)
      return &*block.embedding;
  return nullptr;
}

void check(const XcitOptions& options) {
  check_patches(options.image_size, options.patch);
  TORCH_CHECK_VALUE(options.classes >= 0 && options.mlp_ratio > 0 && options.class_blocks > 0,
                    "an XCiT with ", options.classes, " classes, an MLP of ", options.mlp_ratio,
                    " widths and ", options.class_blocks,
                    " blocks of class attention; the first may be 0, the others must be positive");
  check_heads(options.dim, options.heads);
  for (const auto& block : options.blocks) check(block);
  check_recomputed(options.checkpoint_blocks, static_cast<std::int64_t>(options.blocks.size()));
  const auto* first = model_codes(options);
  for (const auto& block : options.blocks) {
    if (!block.embedding || block.embedding->code_size == 0 || !block.embedding->codes_over_blocks) continue;
    TORCH_CHECK_VALUE(block.embedding->code_size == first->code_size, "code_size is ", first->code_size,
                      " and ", block.embedding->code_size,
                      " in blocks that share their codes; one size is expected");
    TORCH_CHECK_VALUE(block.embedding->code_deviation == first->code_deviation, "code_deviation is ",
                      first->code_deviation, " and ", block.embedding->code_deviation,
                      " in blocks that share their codes; one deviation is expected");
  }
}

}  // namespace

XcitImpl::XcitImpl(XcitOptions options, torch::Device device) : options_{std::move(options)} {
  check(options_);
  const auto dim = options_.dim, mlp_dim = options_.mlp_ratio * dim;
  patch_embed_ =
      register_module("patch_embed", ConvPatches{dim, options_.patch, options_.patch_projection, device});
  const auto side = options_.image_size / options_.patch;
  pos_embed_ = register_module("pos_embed", FourierPositions{dim, side, side, device});
  if (options_.has_head) cls_token_ = register_parameter("cls_token", new_normal({1, 1, dim}, 0.02, device));
  Codes codes{nullptr};
  if (const auto* embedding = model_codes(options_))
    codes = register_module("codes", Codes{*embedding, device});

  auto blocks = register_module("blocks", torch::nn::ModuleList{});
  const auto rates = drop_rates(options_.drop_path, static_cast<std::int64_t>(options_.blocks.size()));
  for (std::size_t block = 0; block < rates.size(); ++block) {
    blocks_.emplace_back(XcitBlockOptions{.dim = dim,
                                          .heads = options_.heads,
                                          .mlp_dim = mlp_dim,
                                          .eta = options_.eta,
                                          .codes = codes,
                                          .choice = options_.blocks[block],
                                          .drop_rate = rates[block]},
                         device);
    blocks->push_back(blocks_.back());
  }
  if (options_.has_head) add_head(mlp_dim, device);
  if (is_started(device)) start_linear_layers(*this);
}

void XcitImpl::add_head(std::int64_t mlp_dim, torch::Device device) {
  const auto dim = options_.dim;
  auto cls_attn_blocks = register_module("cls_attn_blocks", torch::nn::ModuleList{});
  for (std::int64_t i = 0; i < options_.class_blocks; ++i) {
    cls_attn_blocks_.emplace_back(ClassAttentionBlockOptions{.dim = dim,
                                                             .heads = options_.heads,
                                                             .mlp_dim = mlp_dim,
                                                             .eta = options_.eta,
                                                             .tokens_norm = options_.tokens_norm},
                                  device);
    cls_attn_blocks->push_back(cls_attn_blocks_.back());
  }
  norm_ = register_module("norm", LayerNorm{dim, device, /*eps=*/1e-6});
  if (options_.classes > 0) head_ = register_module("head", Linear{dim, options_.classes, device});
}

torch::Tensor XcitImpl::forward(const torch::Tensor& images) {
  const auto token = class_token(images);
  return head_ ? head_(drop_out(token, options_.dropout.head, is_training())) : token;
}

torch::Tensor XcitImpl::features(const torch::Tensor& images, const FeatureChoice& choice) {
  TORCH_CHECK_VALUE(choice.blocks == 1 && !choice.has_patch_mean, "features of the last ", choice.blocks,
                    choice.has_patch_mean ? " blocks and the patches" : " blocks",
                    " of an XCiT, whose class token is behind all of them; 1 and no patches are expected");
  return class_token(images);
}

torch::Tensor XcitImpl::class_token(const torch::Tensor& images) {
  check_has_head(options_.has_head);
  const auto map = patch_embed_(images);  // [B, dim, rows, columns]
  const auto rows = map.size(2), columns = map.size(3);
  auto x = tokens_of(map);  // [B, N, dim]
  for (std::size_t block = 0; block < blocks_.size(); ++block) x = run(block, x, rows, columns);

  const auto cls_token = cls_token_.to(x.scalar_type()).expand({x.size(0), -1, -1});
  x = torch::cat({cls_token, x}, 1);  // [B, 1 + N, dim]
  for (const auto& block : cls_attn_blocks_) x = block(x);
  return norm_(x).select(1, 0);
}

std::vector<torch::Tensor> XcitImpl::maps_after(const std::vector<std::int64_t>& layers,
                                                const torch::Tensor& images) {
  check_layers(layers, static_cast<std::int64_t>(blocks_.size()));
  const auto map = patch_embed_(images);
  const TokenGrid grid{.rows = map.size(2), .columns = map.size(3)};
  return token_maps(layers, tokens_of(map), grid, [&](std::int64_t block, const torch::Tensor& x) {
    return run(static_cast<std::size_t>(block), x, grid.rows, grid.columns);
  });
}

torch::Tensor XcitImpl::tokens_of(const torch::Tensor& map) {
  const auto x = (map + pos_embed_(map.size(2), map.size(3))).flatten(2).mT().contiguous();
  return drop_out(x, options_.dropout.positions, is_training());
}

torch::Tensor XcitImpl::run(std::size_t index, const torch::Tensor& x, std::int64_t rows,
                            std::int64_t columns) const {
  const auto& block = blocks_[index];
  return run_block([=](const torch::Tensor& in) { return block(in, rows, columns); }, x,
                   static_cast<std::int64_t>(index) < options_.checkpoint_blocks, {block.get()});
}

void check(const XcitChoice& choice) {
  const bool over_channels = choice.attention == XcitAttention::kChannels;
  TORCH_CHECK_VALUE(
      over_channels || choice.l2_norm,
      "l2_norm is off in a block without attention over channels, the only one that has it; leave it on");
  TORCH_CHECK_VALUE(
      over_channels || (choice.learned_temperature && choice.temperature == 1.0), "temperature is ",
      choice.temperature, choice.learned_temperature ? "" : ", fixed,",
      " in a block without attention over channels, the only one that has it; leave it as it is");
  TORCH_CHECK_VALUE(choice.attention != XcitAttention::kNone || !choice.embedding,
                    "embedding is given for a block without attention; leave it out");
  if (choice.embedding) check(*choice.embedding);
}

XcitBlockImpl::XcitBlockImpl(const XcitBlockOptions& options, torch::Device device)
    : drop_rate_{options.drop_rate} {
  const auto& choice = options.choice;
  check(choice);
  const auto norm = [&](const char* name) {
    return register_module(name, LayerNorm{options.dim, device, /*eps=*/1e-6});
  };
  const auto scale = [&](const char* name) {
    return register_parameter(name, new_constant({options.dim}, options.eta, device));
  };

  if (choice.attention != XcitAttention::kNone) {
    norm1_ = norm("norm1");
    if (choice.attention == XcitAttention::kTokens) {
      const QkvOptions qkv{.dim = options.dim, .embedding = choice.embedding, .codes = options.codes};
      over_tokens_ = register_module("attn", TokenAttention{qkv, options.heads, device});
    } else {
      const CrossCovarianceOptions over_channels{
          .dim = options.dim, .heads = options.heads, .codes = options.codes, .choice = choice};
      over_channels_ = register_module("attn", CrossCovariance{over_channels, device});
    }
    gamma1_ = scale("gamma1");
  }
  if (choice.local_patch_interaction) {
    norm3_ = norm("norm3");
    local_mp_ = register_module("local_mp", LocalPatchInteraction{options.dim, device});
    gamma3_ = scale("gamma3");
  }
  norm2_ = norm("norm2");
  mlp_ = register_module("mlp", Mlp{options.dim, options.mlp_dim, device});
  gamma2_ = scale("gamma2");
}

torch::Tensor XcitBlockImpl::forward(const torch::Tensor& x, std::int64_t rows, std::int64_t columns) {
  auto y = x;
  if (norm1_) y = add_residual(y, drop(gamma1_ * attend(norm1_(y))));
  if (norm3_) y = add_residual(y, drop(gamma3_ * local_mp_(norm3_(y), rows, columns)));
  return add_residual(y, drop(gamma2_ * mlp_(norm2_(y))));
}

}  // namespace abl::models
