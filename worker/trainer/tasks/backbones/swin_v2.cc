// SPDX-License-Identifier: Apache-2.0
#include "models/backbones/swin_v2.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::CosineAttentionChoice attention_choice(const models::KeyChoice& key) {
  if (key.method != models::KeyMethod::kLinear) return key;
  return models::QkvChoice{};
}

models::ModelOptions swin_v2_options(const ModelConfig& model, const DataConfig& data) {
  models::SwinV2Options options{
      .image_size = data.image_size,
      .patch = model.patch,
      .classes = data.classes,
      .dim = model.dim,
      .depths = {model.stage_depths.begin(), model.stage_depths.end()},
      .heads = {model.stage_heads.begin(), model.stage_heads.end()},
      .window = model.window,
      .pretrained_window = {model.pretrained_window.begin(), model.pretrained_window.end()},
      .mlp_ratio = model.mlp_ratio,
      .attention = {}};
  for (const auto& key : model.key) options.attention.push_back(attention_choice(key));
  return options;
}

}  // namespace

extern constinit const Backbone kSwinV2Backbone{.family = "swin-v2", .options = swin_v2_options};

}  // namespace abl::tasks
