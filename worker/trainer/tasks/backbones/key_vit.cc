// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/key_vit.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::ModelOptions key_vit_options(const ModelConfig& model, const DataConfig& data) {
  return models::KeyVitOptions{.image_size = data.image_size,
                               .patch = model.patch,
                               .classes = data.classes,
                               .dim = model.dim,
                               .heads = model.heads,
                               .mlp_dim = model.mlp_dim,
                               .keys = {model.key.begin(), model.key.end()}};
}

}  // namespace

extern constinit const Backbone kKeyVitBackbone{.family = "key-vit", .options = key_vit_options};

}  // namespace abl::tasks
