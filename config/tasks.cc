// SPDX-License-Identifier: Apache-2.0
#include "config/tasks.h"

#include <algorithm>

namespace abl::config {
namespace {

/// Those that are of labels of whole images, and of what is made of an image that has nothing but such a
/// label, and some more.
std::vector<std::string_view> with_keys_of_labels(std::vector<std::string_view> more) {
  more.insert(more.end(), {"loss", "target_threshold", "label_smoothing", "dropout", "distillation", "crop",
                           "interpolation", "color_jitter", "appearance", "randaugment", "trivial_augment",
                           "random_erasing", "mixing", "repeated_augmentation", "eval_crop_ratio"});
  return more;
}

}  // namespace

std::span<const Task> tasks() {
  static const std::vector<Task> kTasks{
      {.kind = TaskKind::kClassify,
       .sentence = "The class of each image.",
       .unit = "images",
       .metrics = {"top1", "top5", "loss"},
       .no_recipe_keys = {"scale_range", "side_range", "longest_side", "largest_class", "distortion"}},
      {.kind = TaskKind::kSegment,
       .sentence = "The class of each pixel, of data with labels of pixels.",
       .unit = "pixels",
       .metrics = {"miou", "macc", "aacc", "loss"},
       .no_recipe_keys = with_keys_of_labels({"side_range", "longest_side"})},
      {.kind = TaskKind::kDetect,
       .sentence = "Things: their boxes, classes and masks, by Mask R-CNN, of data with instances.",
       .unit = "things",
       .metrics = {"box_ap", "box_ap50", "box_ap75", "box_ap_small", "box_ap_medium", "box_ap_large",
                   "mask_ap", "mask_ap50", "mask_ap75", "mask_ap_small", "mask_ap_medium", "mask_ap_large"},
       .no_recipe_keys = with_keys_of_labels({"largest_class", "distortion"})},
  };
  return kTasks;
}

const Task& task_of(TaskKind kind) { return *std::ranges::find(tasks(), kind, &Task::kind); }

const Task& task_named(std::string_view kind) {
  return task_of(value_named<TaskKind>(kind).value_or(TaskKind::kClassify));
}

}  // namespace abl::config
