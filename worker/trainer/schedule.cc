// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace abl::trainer {

Length length_of(const config::RecipeConfig& recipe, std::int64_t train_images) {
  Length length;
  length.steps_per_epoch = std::max<std::int64_t>(1, train_images / recipe.batch);
  const auto steps = [&](double epochs) {
    return std::max<std::int64_t>(1, std::llround(epochs * static_cast<double>(length.steps_per_epoch)));
  };
  length.total_steps = steps(recipe.epochs);
  length.eval_every = recipe.eval_every > 0 ? steps(recipe.eval_every) : length.total_steps;
  length.log_every = std::max<std::int64_t>(
      1, length.total_steps / 200);  // enough for a curve, little enough for a list of thousands
  return length;
}

double learning_rate(const config::RecipeConfig& recipe, std::int64_t done, std::int64_t total_steps) {
  const double warm = recipe.warmup * static_cast<double>(total_steps), at = static_cast<double>(done);
  if (at < warm) return recipe.lr * (recipe.warmup_start + (1 - recipe.warmup_start) * at / warm);
  const double share = (at - warm) / std::max(1.0, static_cast<double>(total_steps) - warm);
  return recipe.min_lr +
         (recipe.lr - recipe.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share)));
}

}  // namespace abl::trainer
