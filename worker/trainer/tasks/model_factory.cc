// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/model_factory.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "config/families/layer_sections.h"
#include "config/families/xcit_sections.h"

namespace abl::tasks {
namespace {

using config::DataConfig;
using config::ModelConfig;

models::AttentionChoice attention_choice(const config::AttentionConfig& config) {
  models::AttentionChoice choice;
  choice.kernel = config.kernel == "gaussian" ? models::Kernel::kGaussian
                  : config.kernel == "none"   ? models::Kernel::kNone
                                              : models::Kernel::kDot;
  choice.probe = config.probe == "inside"    ? models::Probe::kInside
                 : config.probe == "outside" ? models::Probe::kOutside
                                             : models::Probe::kNone;
  choice.share = config.share;
  choice.groups = config.groups;
  choice.layout = config.layout == "block"         ? models::Layout::kBlock
                  : config.layout == "fused-block" ? models::Layout::kFusedBlock
                                                   : models::Layout::kInterleaved;
  choice.tied_weight_scale = config.tied_weight_scale;
  return choice;
}

/// Nothing for a linear key.
std::optional<models::KeyChoice> key_choice(const config::KeyConfig& config) {
  if (config.method == "linear") return std::nullopt;
  models::KeyChoice choice;
  choice.method = config.method == "spatialk"  ? models::KeyMethod::kSpatialK
                  : config.method == "kua"     ? models::KeyMethod::kKua
                  : config.method == "simplek" ? models::KeyMethod::kSimpleK
                                               : models::KeyMethod::kVanillaK;
  choice.charts = config.charts;
  choice.broadcasting = config.broadcasting == "all"      ? models::Broadcasting::kOverAll
                        : config.broadcasting == "charts" ? models::Broadcasting::kOverCharts
                                                          : models::Broadcasting::kNone;
  choice.order = config.chart_order == "plain-reshape" ? models::ChartOrder::kPlainReshape
                                                       : models::ChartOrder::kChartMajor;
  choice.gamma = config.gamma;
  choice.gamma_cb = config.gamma_cb;
  return choice;
}

std::vector<std::int64_t> widened(const std::vector<int>& values) { return {values.begin(), values.end()}; }

/// Nothing for a linear embedding.
std::optional<models::EmbeddingChoice> embedding_choice(const config::EmbeddingConfig& config) {
  if (config.kind == "linear") return std::nullopt;
  return models::EmbeddingChoice{.widths = widened(config::hidden_widths(config)),
                                 .shared = config::shared_layers(config),
                                 .code_size = config.code_size,
                                 .codes_over_blocks = config.codes == "model",
                                 .code_deviation = config.code_deviation,
                                 .bias = config.bias};
}

models::XcitChoice block_choice(const config::BlockConfig& block, const config::EmbeddingConfig& embedding) {
  return {.attention = block.attention == "tokens" ? models::XcitAttention::kTokens
                       : block.attention == "none" ? models::XcitAttention::kNone
                                                   : models::XcitAttention::kChannels,
          .embedding = embedding_choice(embedding),
          .l2_norm = block.l2_norm,
          .learned_temperature = block.learned_temperature,
          .temperature = block.temperature,
          .local_patch_interaction = block.lpi};
}

models::ModelOptions simple_vit(const ModelConfig& model, const DataConfig& data) {
  models::SimpleVitOptions options{.image_size = data.image_size,
                                   .patch = model.patch,
                                   .classes = data.classes,
                                   .dim = model.dim,
                                   .depth = model.depth,
                                   .heads = model.heads,
                                   .dim_head = model.dim_head,
                                   .mlp_dim = model.mlp_dim,
                                   .attention = {}};
  for (const auto& layer : model.attention) options.attention.push_back(attention_choice(layer));
  return options;
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
  models::KeyVitOptions options{.image_size = data.image_size,
                                .patch = model.patch,
                                .classes = data.classes,
                                .dim = model.dim,
                                .heads = model.heads,
                                .mlp_dim = model.mlp_dim,
                                .keys = {}};
  for (const auto& layer : model.key) options.keys.push_back(key_choice(layer));
  return options;
}

/// Swin's own attention where nothing of it is ablated: its parameters are then timm's.
models::WindowAttentionChoice window_choice(const config::AttentionConfig& attention,
                                            const config::KeyConfig& key) {
  if (const auto choice = key_choice(key)) return *choice;
  if (attention == config::AttentionConfig{}) return models::QkvChoice{};
  return attention_choice(attention);
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
  for (const auto& layer : model.key) {
    if (const auto choice = key_choice(layer))
      options.attention.emplace_back(*choice);
    else
      options.attention.emplace_back(models::QkvChoice{});
  }
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
                              .patch_projection = model.patches == "linear"
                                                      ? models::PatchProjection::kLinear
                                                      : models::PatchProjection::kConvolutions,
                              .blocks = {}};
  for (std::size_t block = 0; block < model.block.size(); ++block)
    options.blocks.push_back(block_choice(model.block[block], model.embedding[block]));
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
  const auto rule =
      recipe.drop_path_rule == "constant" ? models::DropPathRule::kConstant : models::DropPathRule::kLinear;
  return models::with_checkpointing(
      models::with_drop_path(model_options(trial.model, trial.data), recipe.drop_path, rule),
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
