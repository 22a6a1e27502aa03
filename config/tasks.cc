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

/// Those that are of pictures with annotations.
std::vector<std::string_view> with_keys_of_pictures(std::vector<std::string_view> more) {
  more.insert(more.end(), {"scale_range", "side_range", "longest_side", "largest_class", "distortion"});
  return more;
}

/// Views are made by the task's own keys, the teacher is the running average, and layers have one rate.
std::vector<std::string_view> not_of_self_distillation() {
  auto keys = with_keys_of_labels(with_keys_of_pictures({"ema", "head_lr", "layer_decay"}));
  std::erase(keys, "interpolation"), std::erase(keys, "eval_crop_ratio");  // of evaluations
  return keys;
}

}  // namespace

bool Task::heeds(std::string_view recipe_key) const {
  if (learns_nothing()) return std::ranges::find(only_recipe_keys, recipe_key) != only_recipe_keys.end();
  return std::ranges::find(no_recipe_keys, recipe_key) == no_recipe_keys.end();
}

std::span<const Task> tasks() {
  static const std::vector<Task> kTasks{
      {.kind = TaskKind::kClassify,
       .sentence = "The class of each image.",
       .unit = "images",
       .metrics = {"top1", "top5", "loss"},
       .no_recipe_keys = with_keys_of_pictures({})},
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
      {.kind = TaskKind::kDino,
       .sentence = "Features of images without labels, by self-distillation (DINO); evaluated by k-NN on the "
                   "teacher's features.",
       .unit = "images",
       .metrics = {"knn20", "knn10", "feature_std"},
       .no_recipe_keys = not_of_self_distillation()},
      {.kind = TaskKind::kProbeLinear,
       .sentence =
           "The class of each image, by a linear layer on the frozen features of start_weights; k-NN on the "
           "same features is measured as well.",
       .unit = "images",
       .metrics = {"top1", "top5", "loss", "knn20", "knn10", "feature_std"},
       // the trunk is as in evaluation, and has no gradients
       .no_recipe_keys =
           with_keys_of_pictures({"distillation", "head_lr", "layer_decay", "drop_path", "drop_path_rule",
                                  "dropout", "position_dropout", "checkpoint_blocks", "sync_batch_norm"})},
      {.kind = TaskKind::kProbeKnn,
       .sentence = "Nothing is trained: k-NN on the features of start_weights.",
       .unit = "images",
       .metrics = {"knn20", "knn10", "feature_std"},
       .only_recipe_keys = {"use", "batch", "precision", "interpolation", "eval_crop_ratio", "start_weights",
                            "start_sha256"}},
  };
  return kTasks;
}

const Task& task_of(TaskKind kind) { return *std::ranges::find(tasks(), kind, &Task::kind); }

const Task& task_named(std::string_view kind) {
  return task_of(value_named<TaskKind>(kind).value_or(TaskKind::kClassify));
}

}  // namespace abl::config
