// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/reg_net.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions reg_net_options(const ModelConfig& model, const DataConfig& data) {
  models::RegNetOptions options{.image_size = data.image_size, .classes = data.classes, .stages = {}};
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage)
    options.stages.push_back({.depth = model.stage_depths[stage],
                              .width = model.stage_widths[stage],
                              .group_width = model.group_width});
  return options;
}

}  // namespace

extern constinit const Backbone kRegNetBackbone{.family = "regnet", .options = reg_net_options};

}  // namespace abl::tasks
