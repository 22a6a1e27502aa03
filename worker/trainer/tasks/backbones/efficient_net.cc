// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/efficient_net.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions efficient_net_options(const ModelConfig& model, const DataConfig& data) {
  return models::scaled({.image_size = data.image_size, .classes = data.classes}, model.width_factor,
                        model.depth_factor);
}

}  // namespace

extern constinit const Backbone kEfficientNetBackbone{.family = "efficientnet",
                                                      .options = efficient_net_options};

}  // namespace abl::tasks
