// SPDX-License-Identifier: Apache-2.0
#include "models/dense/trunk_maps.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace abl::models {
namespace {

constexpr std::int64_t kLevels = 4;

Trunk& trunk_of(Classifier& model) {
  auto* trunk = dynamic_cast<Trunk*>(&model);
  TORCH_CHECK_VALUE(trunk, "maps of a ", model.name(), ", which gives none of its layers");
  return *trunk;
}

/// Whether layers differ in what leaves them: the stages of a Swin.
bool has_stages(const std::vector<Trunk::Level>& levels) {
  return levels.size() > 1 && levels.front().stride != levels.back().stride;
}

std::vector<std::int64_t> chosen_layers(const TrunkMapsOptions& options,
                                        const std::vector<Trunk::Level>& levels) {
  const auto depth = static_cast<std::int64_t>(levels.size());
  auto layers = options.layers;
  if (layers.empty() && has_stages(levels)) {
    layers.resize(levels.size());
    std::iota(layers.begin(), layers.end(), 1);
  } else if (layers.empty()) {
    layers = usual_layers(depth, options.scale);
  }
  check_layers(layers, depth);
  return layers;
}

}  // namespace

std::vector<std::int64_t> usual_layers(std::int64_t depth, MapScale scale) {
  TORCH_CHECK_VALUE(depth >= kLevels, "four maps of a model of ", depth, " layers; at least 4 are expected");
  if (scale == MapScale::kPatch) return {depth / 4, depth / 2, depth - depth / 4, depth};
  return {std::max<std::int64_t>(1, depth / 3), depth / 2, depth - depth / 3, depth};
}

FourTimesImpl::FourTimesImpl(std::int64_t dim, torch::Device device) {
  first_ = register_module("0", UpConv2d{dim, dim, device});
  norm_ = register_module("1", BatchNorm2d{dim, device});
  second_ = register_module("3", UpConv2d{dim, dim, device});
}

torch::Tensor FourTimesImpl::forward(const torch::Tensor& x) {
  return second_(torch::gelu(norm_(first_(x))));
}

TrunkMapsImpl::TrunkMapsImpl(std::shared_ptr<Classifier> trunk, TrunkMapsOptions options,
                             torch::Device device)
    : module_{std::move(trunk)}, trunk_{&trunk_of(*module_)} {
  register_module<torch::nn::Module>("trunk", module_);
  const auto levels = trunk_->levels();
  layers_ = chosen_layers(options, levels);
  for (const auto layer : layers_) {
    channels_.push_back(levels[static_cast<std::size_t>(layer - 1)].channels);
    strides_.push_back(levels[static_cast<std::size_t>(layer - 1)].stride);
  }
  if (options.scale == MapScale::kPyramid && !has_stages(levels))
    add_pyramid(channels_.front(), strides_.front(), device);
}

void TrunkMapsImpl::add_pyramid(std::int64_t dim, std::int64_t patch, torch::Device device) {
  TORCH_CHECK_VALUE(layers_.size() == kLevels, "a pyramid of ", layers_.size(), " maps; 4 are expected");
  TORCH_CHECK_VALUE(patch == 8 || patch == 16, "a pyramid of patches of ", patch,
                    " pixels; 8 or 16 are expected");
  if (patch == 16) four_times_ = register_module("fpn1", FourTimes{dim, device});
  auto twice = torch::nn::ModuleList{};
  twice_ = UpConv2d{dim, dim, device};
  twice->push_back(twice_);  // under the name that it has in the release's sequence: "0"
  register_module(patch == 16 ? "fpn2" : "fpn1", twice);
  pooled_ = patch == 16 ? std::vector<std::int64_t>{1, 1, 1, 2} : std::vector<std::int64_t>{1, 1, 2, 4};
  strides_ = {4, 8, 16, 32};
}

std::vector<torch::Tensor> TrunkMapsImpl::maps(const torch::Tensor& images) {
  auto maps = trunk_->maps_after(layers_, images);
  if (pooled_.empty()) return maps;
  if (four_times_) maps[0] = four_times_(maps[0]);
  auto& second = maps[four_times_ ? 1 : 0];
  second = twice_(second);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const auto factor = pooled_[i];
    if (factor == 1) continue;
    TORCH_CHECK_VALUE(maps[i].size(2) >= factor && maps[i].size(3) >= factor, "images of ", images.size(2),
                      " x ", images.size(3), " pixels for maps of a stride of ", strides_[i], "; at least ",
                      strides_[i], " x ", strides_[i], " are expected");
    maps[i] = torch::max_pool2d(maps[i], factor);
  }
  return maps;
}

std::shared_ptr<FeatureMaps> build_feature_maps(const ModelOptions& model, const TrunkMapsOptions& options,
                                                torch::Device device) {
  auto backbone = build(without_head(model), device);
  if (auto maps = std::dynamic_pointer_cast<FeatureMaps>(backbone)) {
    TORCH_CHECK_VALUE(options.layers.empty(), "layers [", options.layers, "] of a ", backbone->name(),
                      ", whose maps are those of its stages; leave them out");
    return maps;
  }
  return std::make_shared<TrunkMapsImpl>(std::move(backbone), options, device);
}

}  // namespace abl::models
