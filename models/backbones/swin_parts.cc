// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/swin_parts.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "models/attention/manifold_key.h"
#include "models/embedding/patches.h"
#include "models/layers/recompute.h"

namespace abl::models {
namespace {

void check(const SwinSizes& sizes) {
  const auto all_positive = [](const std::vector<std::int64_t>& values) {
    return !values.empty() && std::ranges::all_of(values, [](auto value) { return value > 0; });
  };
  check_patches(sizes.image_size, sizes.patch);
  TORCH_CHECK_VALUE(sizes.classes > 0 && sizes.dim > 0 && sizes.window > 0 && sizes.mlp_ratio > 0,
                    "a Swin transformer with ", sizes.classes, " classes, width ", sizes.dim, ", windows of ",
                    sizes.window, " and an MLP of ", sizes.mlp_ratio, " widths; all four must be positive");
  TORCH_CHECK_VALUE(all_positive(sizes.depths), "depths is [", sizes.depths,
                    "]; one positive number of blocks for each stage is expected");
  TORCH_CHECK_VALUE(all_positive(sizes.heads) && sizes.heads.size() == sizes.depths.size(), "heads is [",
                    sizes.heads, "]; one positive number for each of the ", sizes.depths.size(),
                    " stages is expected");
  TORCH_CHECK_VALUE(
      sizes.pretrained_window.empty() ||
          (all_positive(sizes.pretrained_window) && sizes.pretrained_window.size() == sizes.depths.size()),
      "pretrained_window is [", sizes.pretrained_window, "]; one positive number for each of the ",
      sizes.depths.size(), " stages, or none, is expected");
  const auto blocks = std::accumulate(sizes.depths.begin(), sizes.depths.end(), std::size_t{0});
  check_recomputed(sizes.checkpoint_blocks, static_cast<std::int64_t>(blocks));
  TORCH_CHECK_VALUE(sizes.choices == blocks, sizes.choices, " attention choices for ", blocks,
                    " blocks; one for each block of all stages is expected");
}

void start_as_released(torch::nn::Module& model) {
  start_linear_layers(model);
  const torch::NoGradGuard no_grad;
  for (const auto& part : model.modules(/*include_self=*/false))
    if (auto* expansion = part->as<ChartExpansionImpl>()) expansion->weights().front().normal_(0, 0.02);
}

}  // namespace

SwinPatchEmbedImpl::SwinPatchEmbedImpl(std::int64_t image_size, std::int64_t patch, std::int64_t dim,
                                       torch::Device device)
    : image_size_{image_size}, patch_{patch} {
  proj_ = register_module(
      "proj", Conv2d{Conv2dOptions{.in = 3, .out = dim, .kernel = patch, .stride = patch}, device});
  norm_ = register_module("norm", LayerNorm{dim, device});
}

torch::Tensor SwinPatchEmbedImpl::forward(const torch::Tensor& images) {
  check_size(images, image_size_);
  return norm_(proj_(images).permute({0, 2, 3, 1}));
}

torch::Tensor SwinPatchEmbedImpl::map_of(const torch::Tensor& images) {
  check_divides(patch_, images);
  return norm_(proj_(images).permute({0, 2, 3, 1}));
}

SwinPatchMergingImpl::SwinPatchMergingImpl(std::int64_t dim, NormPlace place, torch::Device device)
    : place_{place} {
  norm_ = register_module("norm", LayerNorm{place == NormPlace::kBefore ? 4 * dim : 2 * dim, device});
  reduction_ = register_module("reduction", Linear{4 * dim, 2 * dim, device, /*has_bias=*/false});
}

torch::Tensor SwinPatchMergingImpl::forward(const torch::Tensor& map) {
  const auto B = map.size(0), rows = (map.size(1) + 1) / 2, columns = (map.size(2) + 1) / 2, C = map.size(3);
  const auto below = map.size(1) % 2, beside = map.size(2) % 2;
  const auto padded = below || beside ? torch::constant_pad_nd(map, {0, 0, 0, beside, 0, below}) : map;
  const auto x = padded.reshape({B, rows, 2, columns, 2, C})
                     .permute({0, 1, 3, 4, 2, 5})  // of four neighbours the columns vary slowest
                     .reshape({B, rows, columns, 4 * C});
  return place_ == NormPlace::kBefore ? reduction_(norm_(x)) : norm_(reduction_(x));
}

void SwinBlockImpl::register_mask(torch::Device device) {
  if (place_.grid.shift) mask_ = register_buffer("attn_mask", shift_mask(place_.grid, device));
}

torch::Tensor SwinBlockImpl::attend(const WindowAttention& attention, const torch::Tensor& map) const {
  const auto& own = place_.grid;
  if (map.size(1) == own.rows && map.size(2) == own.columns)
    return join_windows(attention(cut_windows(map, own), mask_), own);
  const auto grid = spread_windows(map.size(1), map.size(2), own.window, place_.is_shifted);
  return join_windows(attention(cut_windows(map, grid), shift_mask(grid, map.device())), grid);
}

SwinStageImpl::SwinStageImpl(SwinPatchMerging downsample, std::vector<SwinBlock> blocks,
                             std::int64_t recomputed)
    : downsample_{std::move(downsample)}, blocks_{std::move(blocks)}, recomputed_{recomputed} {
  if (downsample_) register_module("downsample", downsample_);
  auto list = register_module("blocks", torch::nn::ModuleList{});
  for (const auto& block : blocks_) list->push_back(block.ptr());
}

torch::Tensor SwinStageImpl::forward(const torch::Tensor& map) {
  auto x = downsample_ ? downsample_(map) : map;
  std::int64_t index = 0;
  for (const auto& block : blocks_) x = run_block(block, x, index++ < recomputed_);
  return x;
}

SwinHeadImpl::SwinHeadImpl(std::int64_t dim, std::int64_t classes, torch::Device device, double dropout)
    : dropout_{dropout} {
  fc_ = register_module("fc", Linear{dim, classes, device});
}

torch::Tensor SwinHeadImpl::forward(const torch::Tensor& map) {
  return fc_(drop_out(map.mean(torch::IntArrayRef{1, 2}), dropout_, is_training()));
}

SwinTrunkImpl::SwinTrunkImpl(SwinSizes of, NormPlace merging, const MakeSwinBlock& make_block,
                             torch::Device device)
    : sizes_{std::move(of)} {
  const auto& sizes = sizes_;
  check(sizes);
  auto side = sizes.image_size / sizes.patch, dim = sizes.dim;
  const auto rates = drop_rates(sizes.drop_path, static_cast<std::int64_t>(sizes.choices));
  std::int64_t index = 0;
  patch_embed_ = register_module("patch_embed", SwinPatchEmbed{sizes.image_size, sizes.patch, dim, device});
  auto layers = register_module("layers", torch::nn::ModuleList{});
  for (std::size_t stage = 0; stage < sizes.depths.size(); ++stage) {
    SwinPatchMerging downsample{nullptr};
    if (stage > 0) {
      downsample = SwinPatchMerging{dim, merging, device};
      side = (side + 1) / 2, dim *= 2;
    }
    const auto recomputed = sizes.checkpoint_blocks - index;
    const auto pretrained = sizes.pretrained_window.empty() ? 0 : sizes.pretrained_window[stage];
    std::vector<SwinBlock> blocks;
    for (std::int64_t block = 0; block < sizes.depths[stage]; ++block, ++index) {
      const bool is_shifted = block % 2 == 1;
      blocks.push_back(make_block({.index = index,
                                   .dim = dim,
                                   .heads = sizes.heads[stage],
                                   .mlp_dim = sizes.mlp_ratio * dim,
                                   .grid = fit_windows(side, sizes.window, is_shifted),
                                   .is_shifted = is_shifted,
                                   .drop_rate = rates.at(static_cast<std::size_t>(index)),
                                   .pretrained_window = pretrained}));
    }
    layers->push_back(stages_.emplace_back(downsample, std::move(blocks), recomputed));
    if (!sizes.has_head)
      stage_norms_.push_back(register_module("norm" + std::to_string(stage), LayerNorm{dim, device}));
  }
  if (sizes.has_head) {
    norm_ = register_module("norm", LayerNorm{dim, device});
    head_ = register_module("head", SwinHead{dim, sizes.classes, device, sizes.dropout.head});
  }
  if (is_started(device)) start_as_released(*this);
}

torch::Tensor SwinTrunkImpl::forward(const torch::Tensor& images) {
  check_has_head(sizes_.has_head);
  auto x = patch_embed_(images);
  for (const auto& stage : stages_) x = stage(x);
  return head_(norm_(x));
}

std::vector<Trunk::Level> SwinTrunkImpl::levels() const {
  std::vector<Level> levels;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage)
    levels.push_back({.channels = sizes_.dim << stage, .stride = sizes_.patch << stage});
  return levels;
}

std::vector<torch::Tensor> SwinTrunkImpl::maps_after(const std::vector<std::int64_t>& layers,
                                                     const torch::Tensor& images) {
  check_layers(layers, static_cast<std::int64_t>(stages_.size()));
  TORCH_CHECK_VALUE(!sizes_.has_head, "maps of a Swin transformer that classifies; its stages have no norms");
  std::vector<torch::Tensor> maps;
  auto x = patch_embed_->map_of(images);
  std::size_t done = 0;
  for (const auto layer : layers) {
    for (; done < static_cast<std::size_t>(layer); ++done) x = stages_[done](x);
    maps.push_back(stage_norms_[done - 1](x).permute({0, 3, 1, 2}));
  }
  return maps;
}

}  // namespace abl::models
