// SPDX-License-Identifier: Apache-2.0
// A whole model: two convolutions and a linear head.
#include "models/layers/layers.h"
#include "models/plugins/plugin.h"

namespace {

using abl::models::ModelSite;
using abl::models::PluginSettings;

class SmallNetImpl : public abl::models::ImageModel {
 public:
  SmallNetImpl(const ModelSite& site, std::int64_t width) {
    const abl::models::Conv2dOptions second{
        .in = width, .out = width, .kernel = 3, .stride = 2, .padding = 1};
    auto first = second;
    first.in = 3;
    first_ = register_module("first", abl::models::Conv2d{first, site.device});
    second_ = register_module("second", abl::models::Conv2d{second, site.device});
    head_ = register_module("head", abl::models::Linear{width, site.classes, site.device});
  }
  // images [B, 3, S, S] -> [B, classes]
  torch::Tensor forward(const torch::Tensor& images) override {
    return head_(torch::relu(second_(torch::relu(first_(images)))).mean({2, 3}));
  }

 private:
  abl::models::Conv2d first_{nullptr}, second_{nullptr};
  abl::models::Linear head_{nullptr};
};

}  // namespace

ABLATE_PLUGIN(abl::models::Plugin{
    .sentence = "Two convolutions",
    .keys =
        {{.name = "width", .sentence = "Channels of both.", .value = std::int64_t{8}, .low = 1, .high = 512}},
    .model = [](const ModelSite& site, const PluginSettings& settings) {
      return std::make_shared<SmallNetImpl>(site, settings.integer("width"));
    }})
