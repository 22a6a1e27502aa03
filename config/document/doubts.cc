// SPDX-License-Identifier: Apache-2.0
#include "config/document/doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/data/data_sets.h"
#include "config/json.h"
#include "config/model/family.h"
#include "config/tasks.h"

namespace abl::config {
namespace {

/// At most so many images to train on; 0 where nothing limits them.
std::int64_t most_images(const DataConfig& data) {
  const std::int64_t there = known_training_images(data);
  return there - held_out_of(data, there);
}

}  // namespace

std::vector<Problem> doubts_of(const TrialConfig& trial) {
  std::vector<Problem> doubts;
  const auto& recipe = trial.recipe;
  if (const auto doubt = family_of(trial.model).doubt_weights; doubt && !recipe.start_weights.empty())
    doubt(trial.model, recipe.start_weights, trial.data.image_size, doubts);
  const std::int64_t images = most_images(trial.data);
  if (images == 0) return doubts;
  if (recipe.batch > images)
    doubts.push_back({"recipe.batch",
                      fmt::format("a batch of {} of {} training images: a step takes all of them, no more",
                                  recipe.batch, images),
                      {}});
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, images / recipe.batch));
  if (recipe.epochs * steps < 1 && !task_of(trial.task.kind).learns_nothing())
    doubts.push_back(
        {"recipe.epochs",
         fmt::format("{} epochs of {} images in batches of {} are less than a step: one is trained",
                     canonical_number(recipe.epochs), images, recipe.batch),
         {}});
  return doubts;
}

}  // namespace abl::config
