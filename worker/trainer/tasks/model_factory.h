// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "config/trial_config.h"
#include "models/backbones/model_options.h"

namespace abl::tasks {

/// For what takes classifiers alone. Throws: Error{kUnimplemented}, with what was to be done, for a trial of
/// another task.
void expect_classifies(const config::TrialConfig& trial, std::string_view what);

/// The options of the model that a trial describes: the one place where configuration becomes a model.
/// Throws: Error{kUnimplemented} for a family that is not built here.
models::ModelOptions model_options(const config::ModelConfig& model, const config::DataConfig& data);

/// The same for training: with the recipe's stochastic depth, dropout and recomputed activations.
models::ModelOptions training_options(const config::TrialConfig& trial);

/// The teacher of a recipe that distils (`config::read_teacher`). Throws: Error{kInvalidArgument}.
models::ModelOptions teacher_options(const config::TrialConfig& trial);

}  // namespace abl::tasks
