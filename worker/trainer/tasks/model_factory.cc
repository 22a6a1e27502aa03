// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/model_factory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "config/document/trial_document.h"
#include "worker/trainer/tasks/backbone.h"

namespace abl::tasks {

void expect_classifies(const config::TrialConfig& trial, std::string_view what) {
  if (trial.task.kind != config::TaskKind::kClassify)
    throw Error{Code::kUnimplemented,
                fmt::format("{} of a task of kind {}: only of classifiers", what, name_of(trial.task.kind))};
}

models::ModelOptions model_options(const config::ModelConfig& model, const config::DataConfig& data) {
  const auto backbones = all_backbones();
  const auto found = std::ranges::find(backbones, model.family, &Backbone::family);
  if (found == backbones.end())
    throw Error{Code::kUnimplemented,
                fmt::format("model.family: this trainer does not support family '{}'", model.family)};
  return (*found)->options(model, data);
}

models::ModelOptions training_options(const config::TrialConfig& trial) {
  const auto& recipe = trial.recipe;
  const auto options =
      models::with_drop_path(model_options(trial.model, trial.data), recipe.drop_path, recipe.drop_path_rule);
  return models::with_checkpointing(
      models::with_dropout(options, {.head = recipe.dropout, .positions = recipe.position_dropout}),
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
