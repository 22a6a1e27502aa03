// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "config/trial_config.h"
#include "models/backbones/classifier.h"
#include "worker/trainer/tasks/classify/loss.h"
#include "worker/trainer/tasks/task.h"

namespace abl::tasks {

/// To recognise images [B, 3, S, S], normalised, on the device.
Work work_of(models::Classifier& model, const torch::Tensor& images, const Targets& targets,
             const config::RecipeConfig& recipe);

}  // namespace abl::tasks
