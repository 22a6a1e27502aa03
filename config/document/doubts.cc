// SPDX-License-Identifier: Apache-2.0
#include "config/document/doubts.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/data/data_sets.h"
#include "config/families/swin_v2.h"
#include "config/json.h"

namespace abl::config {
namespace {

/// At most so many images to train on; 0 where nothing limits them.
std::int64_t most_images(const DataConfig& data) {
  const DataSet* known = find_data_set(data.name);
  const std::int64_t there = known && !known->embedded ? known->images : 0;
  if (there == 0 || data.train_images == 0) return std::max<std::int64_t>(there, data.train_images);
  return std::min<std::int64_t>(there, data.train_images);
}

/// SwinV2's relative positions have the scale of the windows that its weights were trained with, which the
/// weights do not say.
void doubt_windows(const TrialConfig& trial, std::vector<Problem>& doubts) {
  const auto& model = trial.model;
  if (model.family != "swin-v2" || trial.recipe.start_weights.empty()) return;
  const Preset* preset = find_preset(model.preset);
  const auto own = stage_windows(model, trial.data.image_size);
  if (model.assumes_window)
    doubts.push_back(
        {"model.pretrained_window",
         fmt::format(
             "{} is assumed, the windows of {}; set model.pretrained_window if '{}' was trained with others",
             plain_text(model.pretrained_window), model.preset, trial.recipe.start_weights),
         {}});
  else if (model.pretrained_window.empty() && !(preset && trained_windows(*preset) == own))
    doubts.push_back({"model.pretrained_window",
                      fmt::format("the windows of '{}' are taken to be those of this model, {}; set "
                                  "model.pretrained_window if they are others",
                                  trial.recipe.start_weights, plain_text(own)),
                      {}});
}

}  // namespace

std::vector<Problem> doubts_of(const TrialConfig& trial) {
  std::vector<Problem> doubts;
  doubt_windows(trial, doubts);
  const auto& recipe = trial.recipe;
  const std::int64_t images = most_images(trial.data);
  if (images == 0) return doubts;
  if (recipe.batch > images)
    doubts.push_back({"recipe.batch",
                      fmt::format("a batch of {} of {} training images: a step takes all of them, no more",
                                  recipe.batch, images),
                      {}});
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, images / recipe.batch));
  if (recipe.epochs * steps < 1)
    doubts.push_back(
        {"recipe.epochs",
         fmt::format("{} epochs of {} images in batches of {} are less than a step: one is trained",
                     canonical_number(recipe.epochs), images, recipe.batch),
         {}});
  return doubts;
}

}  // namespace abl::config
