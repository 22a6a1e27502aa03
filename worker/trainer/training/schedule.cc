// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace abl::training {

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

namespace {

/// From 0 to 1 along half a cosine.
double rise(double share) { return 0.5 * (1 - std::cos(std::numbers::pi * share)); }

/// How many of the recipe's epochs lie behind a step.
int epochs_passed(const config::RecipeConfig& recipe, double done, double total_steps) {
  const double epoch = recipe.epochs * done / total_steps;
  return static_cast<int>(std::ranges::count_if(recipe.step_epochs, [&](int at) { return at <= epoch; }));
}

}  // namespace

double learning_rate(const config::RecipeConfig& recipe, std::int64_t done, std::int64_t total_steps) {
  const double total = static_cast<double>(total_steps), at = static_cast<double>(done);
  const double warm = recipe.warmup * total;
  if (at < warm) {
    const double part = recipe.schedule == config::Schedule::kOneCycle ? rise(at / warm) : at / warm;
    return recipe.lr * (recipe.warmup_start + (1 - recipe.warmup_start) * part);
  }
  const double share = std::min(1.0, (at - warm) / std::max(1.0, total - warm));
  double left = 1 - rise(share);
  switch (recipe.schedule) {
    case config::Schedule::kConstant:
      return recipe.lr;
    case config::Schedule::kStep:
      return recipe.lr * std::pow(recipe.step_factor, epochs_passed(recipe, at, total));
    case config::Schedule::kLinear:
      left = 1 - share;
      break;
    case config::Schedule::kPolynomial:
      left = std::pow(1 - share, recipe.power);
      break;
    case config::Schedule::kCosine:
    case config::Schedule::kOneCycle:
      break;
  }
  return recipe.min_lr + (recipe.lr - recipe.min_lr) * left;
}

double weight_decay(const config::RecipeConfig& recipe, std::int64_t done, std::int64_t total_steps) {
  if (recipe.weight_decay_end == recipe.weight_decay) return recipe.weight_decay;  // to the bit
  const double share = static_cast<double>(done) / static_cast<double>(total_steps);
  return recipe.weight_decay + (recipe.weight_decay_end - recipe.weight_decay) * rise(std::min(1.0, share));
}

}  // namespace abl::training
