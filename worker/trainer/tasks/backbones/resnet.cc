// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/resnet.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions resnet_options(const ModelConfig& model, const DataConfig& data) {
  return models::ResNetOptions{.image_size = data.image_size,
                               .classes = data.classes,
                               .layers = {model.stage_depths.begin(), model.stage_depths.end()},
                               .widths = {model.stage_widths.begin(), model.stage_widths.end()},
                               .has_bottlenecks = model.bottleneck,
                               .groups = model.cardinality,
                               .width_per_group = model.base_width};
}

}  // namespace

extern constinit const Backbone kResnetBackbone{.family = "resnet", .options = resnet_options};

}  // namespace abl::tasks
