// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/model_factory.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "base/error.h"
#include "config/document/trial_document.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

std::vector<std::int64_t> widened(const std::vector<int>& values) { return {values.begin(), values.end()}; }

models::ModelOptions simple_vit(const ModelConfig& model, const DataConfig& data) {
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

models::ModelOptions vit(const ModelConfig& model, const DataConfig& data) {
  return models::VitOptions{.image_size = data.image_size,
                            .patch = model.patch,
                            .classes = data.classes,
                            .dim = model.dim,
                            .depth = model.depth,
                            .heads = model.heads,
                            .mlp_ratio = model.mlp_ratio,
                            .has_qkv_bias = model.qkv_bias};
}

models::ModelOptions key_vit(const ModelConfig& model, const DataConfig& data) {
  return models::KeyVitOptions{.image_size = data.image_size,
                               .patch = model.patch,
                               .classes = data.classes,
                               .dim = model.dim,
                               .heads = model.heads,
                               .mlp_dim = model.mlp_dim,
                               .keys = {model.key.begin(), model.key.end()}};
}

/// Swin's own attention where nothing of it is ablated: its parameters are then timm's.
models::WindowAttentionChoice window_choice(const models::AttentionChoice& attention,
                                            const models::KeyChoice& key) {
  if (key.method != models::KeyMethod::kLinear) return key;
  if (attention != models::AttentionChoice{}) return attention;
  return models::QkvChoice{};
}

models::CosineAttentionChoice cosine_choice(const models::KeyChoice& key) {
  if (key.method != models::KeyMethod::kLinear) return key;
  return models::QkvChoice{};
}

/// What both versions of Swin take alike; the attention is left to the caller.
template <class Options>
Options swin_sizes(const ModelConfig& model, const DataConfig& data) {
  return {.image_size = data.image_size,
          .patch = model.patch,
          .classes = data.classes,
          .dim = model.dim,
          .depths = widened(model.stage_depths),
          .heads = widened(model.stage_heads),
          .window = model.window,
          .mlp_ratio = model.mlp_ratio,
          .attention = {}};
}

models::ModelOptions swin(const ModelConfig& model, const DataConfig& data) {
  auto options = swin_sizes<models::SwinOptions>(model, data);
  for (std::size_t block = 0; block < model.attention.size(); ++block)
    options.attention.push_back(window_choice(model.attention[block], model.key[block]));
  return options;
}

models::ModelOptions swin_v2(const ModelConfig& model, const DataConfig& data) {
  auto options = swin_sizes<models::SwinV2Options>(model, data);
  options.pretrained_window = widened(model.pretrained_window);
  for (const auto& key : model.key) options.attention.push_back(cosine_choice(key));
  return options;
}

models::ModelOptions xcit(const ModelConfig& model, const DataConfig& data) {
  models::XcitOptions options{.image_size = data.image_size,
                              .patch = model.patch,
                              .classes = data.classes,
                              .dim = model.dim,
                              .heads = model.heads,
                              .mlp_ratio = model.mlp_ratio,
                              .class_blocks = model.class_blocks,
                              .eta = model.eta,
                              .tokens_norm = model.tokens_norm,
                              .patch_projection = model.patches,
                              .blocks = model.block};
  for (std::size_t block = 0; block < model.block.size(); ++block)
    if (const auto& embedding = model.embedding[block]; embedding.kind != config::EmbeddingKind::kLinear)
      options.blocks[block].embedding = embedding;
  return options;
}

models::ModelOptions resnet(const ModelConfig& model, const DataConfig& data) {
  return models::ResNetOptions{.image_size = data.image_size,
                               .classes = data.classes,
                               .layers = widened(model.stage_depths),
                               .widths = widened(model.stage_widths),
                               .groups = model.cardinality,
                               .width_per_group = model.base_width};
}

models::ModelOptions efficient_net(const ModelConfig& model, const DataConfig& data) {
  return models::scaled({.image_size = data.image_size, .classes = data.classes}, model.width_factor,
                        model.depth_factor);
}

models::ModelOptions reg_net(const ModelConfig& model, const DataConfig& data) {
  models::RegNetOptions options{.image_size = data.image_size, .classes = data.classes, .stages = {}};
  for (std::size_t stage = 0; stage < model.stage_depths.size(); ++stage)
    options.stages.push_back({.depth = model.stage_depths[stage],
                              .width = model.stage_widths[stage],
                              .group_width = model.group_width});
  return options;
}

using Builder = models::ModelOptions (*)(const ModelConfig&, const DataConfig&);

const std::map<std::string_view, Builder>& builders() {
  static const std::map<std::string_view, Builder> all{
      {"simple-vit", simple_vit}, {"vit", vit},   {"key-vit", key_vit}, {"swin", swin},
      {"swin-v2", swin_v2},       {"xcit", xcit}, {"resnet", resnet},   {"efficientnet", efficient_net},
      {"regnet", reg_net}};
  return all;
}

}  // namespace

models::ModelOptions model_options(const ModelConfig& model, const DataConfig& data) {
  const auto found = builders().find(model.family);
  if (found == builders().end())
    throw Error{Code::kUnimplemented,
                fmt::format("model.family: this trainer does not support family '{}'", model.family)};
  return found->second(model, data);
}

models::ModelOptions training_options(const config::TrialConfig& trial) {
  const auto& recipe = trial.recipe;
  return models::with_checkpointing(
      models::with_drop_path(model_options(trial.model, trial.data), recipe.drop_path, recipe.drop_path_rule),
      recipe.checkpoint_blocks);
}

models::ModelOptions teacher_options(const config::TrialConfig& trial) {
  std::vector<config::Problem> problems;
  const auto teacher = config::read_teacher(trial, problems);
  if (!problems.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: {}", problems.front().path, problems.front().message)};
  return model_options(teacher.model, teacher.data);
}

}  // namespace abl::tasks
