// SPDX-License-Identifier: Apache-2.0
// The same of PyTorch's own modules, which cannot be made on the meta device: it trains, and is not counted.
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "models/plugins/plugin.h"

namespace {

using abl::models::ModelSite;
using abl::models::PluginSettings;

class ForeignNetImpl : public abl::models::ImageModel {
 public:
  ForeignNetImpl(const ModelSite& site, std::int64_t width) {
    first_ = register_module("first",
                             torch::nn::Conv2d{torch::nn::Conv2dOptions(3, width, 3).stride(2).padding(1)});
    second_ = register_module(
        "second", torch::nn::Conv2d{torch::nn::Conv2dOptions(width, width, 3).stride(2).padding(1)});
    head_ = register_module("head", torch::nn::Linear{width, site.classes});
  }
  // images [B, 3, S, S] -> [B, classes]
  torch::Tensor forward(const torch::Tensor& images) override {
    return head_(torch::relu(second_(torch::relu(first_(images)))).mean({2, 3}));
  }

 private:
  torch::nn::Conv2d first_{nullptr}, second_{nullptr};
  torch::nn::Linear head_{nullptr};
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{
    .sentence = "Two convolutions of PyTorch's",
    .keys =
        {{.name = "width", .sentence = "Channels of both.", .value = std::int64_t{8}, .low = 1, .high = 512}},
    .model = [](const ModelSite& site, const PluginSettings& settings) {
      return std::make_shared<ForeignNetImpl>(site, settings.integer("width"));
    }})
