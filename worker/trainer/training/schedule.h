// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "config/trial_config.h"

namespace abl::training {

/// How long a training is, in optimiser steps.
struct Length {
  std::int64_t steps_per_epoch =
      0;  ///< full batches of an epoch; one smaller batch where there are fewer images than that
  std::int64_t total_steps = 0;
  std::int64_t eval_every = 0;  ///< steps between evaluations; the last step is evaluated in any case
  std::int64_t log_every = 0;   ///< steps between points of train/loss
};
Length length_of(const config::RecipeConfig& recipe, std::int64_t train_images);

/// Learning rate of the step that follows `done` completed ones: warm-up from warmup_start · lr, then
///   cosine     half a cosine to min_lr (MSF supplement, Table A)
///   linear     a line to min_lr
///   one-cycle  as cosine, after a warm-up along half a cosine (manifold key, section 5)
///   step       step_factor at each of step_epochs
///   constant   lr
double learning_rate(const config::RecipeConfig& recipe, std::int64_t done, std::int64_t total_steps);

/// Weight decay of the same step: from the recipe's along half a cosine to its end. Source: DINO,
/// section 3.1.
double weight_decay(const config::RecipeConfig& recipe, std::int64_t done, std::int64_t total_steps);

}  // namespace abl::training
