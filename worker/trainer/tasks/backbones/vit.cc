// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/vit.h"
#include "worker/trainer/tasks/backbone.h"
#include "worker/trainer/tasks/plugins.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions vit_options(const ModelConfig& model, const DataConfig& data) {
  return models::VitOptions{.image_size = data.image_size,
                            .patch = model.patch,
                            .classes = data.classes,
                            .dim = model.dim,
                            .depth = model.depth,
                            .heads = model.heads,
                            .mlp_ratio = model.mlp_ratio,
                            .has_qkv_bias = model.qkv_bias,
                            .layer_scale = model.layer_scale,
                            .has_class_position = model.class_position,
                            .has_distillation_token = model.distillation_token,
                            .plugin = plugin_of(model)};
}

}  // namespace

extern constinit const Backbone kVitBackbone{.family = "vit", .options = vit_options};

}  // namespace abl::tasks
