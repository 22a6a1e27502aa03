// SPDX-License-Identifier: Apache-2.0
#include "models/dense/fpn.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include <cmath>

namespace abl::models {
namespace {

void start(const ConvBlock& block) {
  const auto weight = block->conv()->weight;
  if (!is_started(weight.device())) return;
  const torch::NoGradGuard no_grad;
  const double bound = std::sqrt(3. / static_cast<double>(weight[0].numel()));
  weight.uniform_(-bound, bound);
}

}  // namespace

FpnImpl::FpnImpl(const FpnOptions& options, torch::Device device) : options_{options} {
  TORCH_CHECK_VALUE(!options_.in.empty() && options_.out > 0, "a feature pyramid of ", options_.in.size(),
                    " maps and ", options_.out, " channels; one of each at least is expected");
  torch::nn::ModuleList inner, layer;
  const auto add = [&](torch::nn::ModuleList& list, std::int64_t in, std::int64_t kernel) {
    ConvBlock block{ConvBlockOptions{.in = in,
                                     .out = options_.out,
                                     .kernel = kernel,
                                     .norm = options_.norm,
                                     .activation = Activation::kNone},
                    device};
    start(block);
    list->push_back(block.ptr());
    return block;
  };
  for (const auto in : options_.in) {
    inner_.push_back(add(inner, in, 1));
    layer_.push_back(add(layer, options_.out, 3));
  }
  register_module("inner_blocks", inner);
  register_module("layer_blocks", layer);
}

std::vector<torch::Tensor> FpnImpl::forward(const std::vector<torch::Tensor>& maps) {
  TORCH_CHECK_VALUE(maps.size() == inner_.size(), "a feature pyramid of ", inner_.size(), " maps was given ",
                    maps.size());
  std::vector<torch::Tensor> levels(maps.size());
  torch::Tensor sum;
  for (auto i = maps.size(); i-- > 0;) {
    const auto own = inner_[i](maps[i]);
    sum = sum.defined() ? own + torch::upsample_nearest2d(sum, own.sizes().slice(2)) : own;
    levels[i] = layer_[i](sum);
  }
  if (options_.has_extra_level)
    levels.push_back(torch::max_pool2d(levels.back(), /*kernel_size=*/1, /*stride=*/2));
  return levels;
}

}  // namespace abl::models
