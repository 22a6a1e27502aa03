// SPDX-License-Identifier: Apache-2.0
#include "config/task/tasks.h"

#include <algorithm>

namespace abl::config {
namespace {

/// Of labels of whole images, and of what is made of an image that has nothing but such a label.
const std::vector<std::string_view>& keys_of_labels() {
  static const std::vector<std::string_view> kKeys{
      "loss",          "target_threshold",      "label_smoothing",
      "dropout",       "distillation",          "crop",
      "interpolation", "color_jitter",          "appearance",
      "randaugment",   "trivial_augment",       "random_erasing",
      "mixing",        "repeated_augmentation", "eval_crop_ratio"};
  return kKeys;
}

}  // namespace

std::span<const Task> tasks() {
  static const std::vector<Task> kTasks{
      {.kind = TaskKind::kClassify,
       .sentence = "The class of each image.",
       .unit = "images",
       .metrics = {"top1", "top5", "loss"},
       .no_recipe_keys = {"scale_range", "largest_class", "distortion"}},
      {.kind = TaskKind::kSegment,
       .sentence = "The class of each pixel, of data with labels of pixels.",
       .unit = "pixels",
       .metrics = {"miou", "macc", "aacc", "loss"},
       .no_recipe_keys = keys_of_labels()},
  };
  return kTasks;
}

const Task& task_of(TaskKind kind) { return *std::ranges::find(tasks(), kind, &Task::kind); }

const Task& task_named(std::string_view kind) {
  return task_of(value_named<TaskKind>(kind).value_or(TaskKind::kClassify));
}

}  // namespace abl::config
