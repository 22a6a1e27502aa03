// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/tasks/dense/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "config/data/data_sets.h"
#include "config/tasks.h"
#include "data/annotated/formats.h"
#include "data/annotated/scenes.h"
#include "worker/trainer/device/failure.h"

namespace abl::tasks {
namespace {

/// The classes that the task learns.
const std::vector<std::string>& classes_in(const data::AnnotatedSet& set, config::TaskKind kind) {
  return kind == config::TaskKind::kDetect ? set.categories : set.labels;
}

data::AnnotatedSet opened_pictures(const config::TrialConfig& trial, const TaskPlace& place) {
  const auto& config = trial.data;
  if (place.data_root.empty())
    throw Error{
        Code::kNotFound,
        fmt::format(
            "no folder is given for the data set {0}: name it with --data-root FOLDER, or start the worker "
            "with --data {0}=FOLDER",
            config.name)};
  auto set = data::open_annotated(config, place.data_root);
  const auto& classes = classes_in(set, trial.task.kind);
  if (classes.empty())
    throw Error{Code::kFailedPrecondition,
                fmt::format("data: {} holds {}, without labels of {}", place.data_root, set.format,
                            config::task_of(trial.task.kind).unit)};
  if (static_cast<int>(classes.size()) != config.classes)
    throw Error{Code::kFailedPrecondition,
                fmt::format("data: {} has {} classes of {}; data.classes of the trial is {}", place.data_root,
                            classes.size(), config::task_of(trial.task.kind).unit, config.classes)};
  for (const auto& [split, source] : {std::pair{"train", set.train}, {"val", set.val}})
    if (source->size() == 0)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("data: {} has no pictures in split {}", place.data_root, split)};
  return set;
}

}  // namespace

data::AnnotatedSet annotated_data(const config::TrialConfig& trial, const TaskPlace& place) {
  const auto& config = trial.data;
  const auto* known = config::find_data_set(config.name);
  const bool is_drawn = known && known->embedded;
  const auto side = std::clamp(config.image_size, data::kSmallestScene, data::kLargestScene);
  if (is_drawn)
    return data::drawn_scenes(static_cast<std::uint32_t>(config.train_images),
                              static_cast<std::uint32_t>(config.val_images), side);
  if (place.stands_in && place.data_root.empty())
    return data::drawn_scenes(static_cast<std::uint32_t>(std::max(512, trial.recipe.batch)), 512, side);
  try {
    return opened_pictures(trial, place);
  } catch (const Error& error) {
    device::throw_as_data_fault(error);
  } catch (const std::filesystem::filesystem_error& error) {
    device::throw_as_data_fault(
        system_error("data: cannot read " + error.path1().string(), error.code().value()));
  }
}

}  // namespace abl::tasks
