// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/simple_vit.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions simple_vit_options(const ModelConfig& model, const DataConfig& data) {
  return models::SimpleVitOptions{.image_size = data.image_size,
                                  .patch = model.patch,
                                  .classes = data.classes,
                                  .dim = model.dim,
                                  .depth = model.depth,
                                  .heads = model.heads,
                                  .dim_head = model.dim_head,
                                  .mlp_dim = model.mlp_dim,
                                  .attention = model.attention};
}

}  // namespace

extern constinit const Backbone kSimpleVitBackbone{.family = "simple-vit", .options = simple_vit_options};

}  // namespace abl::tasks
