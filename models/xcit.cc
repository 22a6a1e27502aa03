// SPDX-License-Identifier: Apache-2.0
#include "models/xcit.h"

#include "models/embedding/patchify.h"
#include "models/recompute.h"

namespace abl::models {
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
  TORCH_CHECK_VALUE(options.classes > 0 && options.mlp_ratio > 0 && options.class_blocks > 0, "an XCiT with ",
                    options.classes, " classes, an MLP of ", options.mlp_ratio, " widths and ",
                    options.class_blocks, " blocks of class attention; all three must be positive");
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
  cls_token_ = register_parameter("cls_token", new_normal({1, 1, dim}, 0.02, device));
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
  head_ = register_module("head", Linear{dim, options_.classes, device});
  if (is_started(device)) start_linear_layers(*this);
}

torch::Tensor XcitImpl::forward(const torch::Tensor& images) {
  const auto map = patch_embed_(images);  // [B, dim, rows, columns]
  const auto rows = map.size(2), columns = map.size(3);
  auto x = (map + pos_embed_(rows, columns)).flatten(2).mT().contiguous();  // [B, N, dim]
  for (std::size_t block = 0; block < blocks_.size(); ++block) x = run(block, x, rows, columns);

  const auto cls_token = cls_token_.to(x.scalar_type()).expand({x.size(0), -1, -1});
  x = torch::cat({cls_token, x}, 1);  // [B, 1 + N, dim]
  for (const auto& block : cls_attn_blocks_) x = block(x);
  return head_(norm_(x).select(1, 0));
}

torch::Tensor XcitImpl::run(std::size_t index, const torch::Tensor& x, std::int64_t rows,
                            std::int64_t columns) const {
  const auto& block = blocks_[index];
  return run_block([=](const torch::Tensor& in) { return block(in, rows, columns); }, x,
                   static_cast<std::int64_t>(index) < options_.checkpoint_blocks, {block.get()});
}

}  // namespace abl::models
