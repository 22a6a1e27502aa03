// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/plugged_model.h"
#include "worker/trainer/tasks/backbone.h"
#include "worker/trainer/tasks/plugins.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions plugin_options(const ModelConfig& model, const DataConfig& data) {
  return models::PluggedModelOptions{
      .image_size = data.image_size, .classes = data.classes, .plugin = plugin_of(model)};
}

}  // namespace

extern constinit const Backbone kPluginBackbone{.family = "plugin", .options = plugin_options};

}  // namespace abl::tasks
