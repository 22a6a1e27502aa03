// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/swin.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

/// Swin's own attention where nothing of it is ablated: its parameters are then timm's.
models::WindowAttentionChoice attention_choice(const models::AttentionChoice& attention,
                                               const models::KeyChoice& key) {
  if (key.method != models::KeyMethod::kLinear) return key;
  if (attention != models::AttentionChoice{}) return attention;
  return models::QkvChoice{};
}

models::ModelOptions swin_options(const ModelConfig& model, const DataConfig& data) {
  models::SwinOptions options{.image_size = data.image_size,
                              .patch = model.patch,
                              .classes = data.classes,
                              .dim = model.dim,
                              .depths = {model.stage_depths.begin(), model.stage_depths.end()},
                              .heads = {model.stage_heads.begin(), model.stage_heads.end()},
                              .window = model.window,
                              .mlp_ratio = model.mlp_ratio,
                              .attention = {}};
  for (std::size_t block = 0; block < model.attention.size(); ++block)
    options.attention.push_back(attention_choice(model.attention[block], model.key[block]));
  return options;
}

}  // namespace

extern constinit const Backbone kSwinBackbone{.family = "swin", .options = swin_options};

}  // namespace abl::tasks
