// SPDX-License-Identifier: Apache-2.0
#include "config/task/task_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "config/data/data_sets.h"
#include "config/model/family.h"
#include "config/recipe/recipes.h"
#include "config/tasks.h"

namespace abl::config {
namespace {

constexpr int kMostLabels = 255;  // of pixels: a byte each, of which 255 is none

bool segments_not(const TaskConfig& task) { return task.kind != TaskKind::kSegment; }
bool detects_not(const TaskConfig& task) { return task.kind != TaskKind::kDetect; }
bool distils_itself_not(const TaskConfig& task) { return task.kind != TaskKind::kDino; }
bool has_no_local_views(const TaskConfig& task) { return distils_itself_not(task) || task.local_views == 0; }
Json areas_of(const TaskConfig& task, double least, double largest) {
  return distils_itself_not(task) ? Json(std::vector<double>{}) : Json({least, largest});
}
bool is_no_linear_probe(const TaskConfig& task) { return task.kind != TaskKind::kProbeLinear; }
/// Of pictures with annotations, by maps of a backbone.
bool is_dense(const TaskConfig& task) { return !segments_not(task) || !detects_not(task); }

/// Channels as the heads' papers and releases have them.
int usual_width(const TaskConfig& task) {
  if (task.kind == TaskKind::kDetect) return 256;
  if (task.kind == TaskKind::kDino) return 2048;
  switch (task.head) {
    case DenseHead::kSemanticFpn:
      return 128;
    case DenseHead::kUperNet:
      return 512;
    case DenseHead::kSetrNaive:
    case DenseHead::kSetrPup:
    case DenseHead::kSetrMla:
      return 256;
  }
  return 0;
}

bool stands_on_pyramid(const TaskConfig& task) {
  return task.kind == TaskKind::kDetect || task.head == DenseHead::kSemanticFpn ||
         task.head == DenseHead::kUperNet;
}

}  // namespace

const std::vector<Field<TaskConfig>>& task_fields() {
  using T = TaskConfig;
  static const std::vector<Field<T>> kFields{
      {.name = "kind",
       .member = choice<&T::kind>(),
       .sentence = "What is learned.",
       .required = true,
       .derived_text = "`classify`"},
      {.name = "head",
       .member = choice<&T::head>(),
       .sentence = "What makes classes of pixels of the backbone's maps.",
       .inert = segments_not,
       .inert_when = "kind is not segment"},
      {.name = "width",
       .member = &T::width,
       .sentence =
           "Channels of the head's convolutions, of detection those of the pyramid, of dino the width "
           "of the head's two hidden layers.",
       .range = {1, 65536},
       .derived = [](const T& task) { return Json(usual_width(task)); },
       .derived_text = "128 of semantic-fpn, 512 of uper-net, 256 of SETR's and of detection, 2048 of dino",
       .inert = [](const T& task) { return !is_dense(task) && distils_itself_not(task); },
       .inert_when = "kind is none of segment, detect and dino"},
      {.name = "dropout",
       .member = &T::dropout,
       .sentence = "Probability that a channel of the head is left out before the classes.",
       .range = {0, 0.99},
       .derived = [](const T& task) { return Json(stands_on_pyramid(task) ? 0.1 : 0.); },
       .derived_text = "0.1; 0 of SETR's",
       .inert = segments_not,
       .inert_when = "kind is not segment"},
      {.name = "layers",
       .member = &T::layers,
       .sentence = "Layers of the backbone, from 1, that its four maps come from.",
       .range = {1, 10000},
       .derived_text = "of a plain transformer those at a third, a half, two thirds and the end, for SETR at "
                       "each quarter; of others their stages",
       .inert = [](const T& task) { return !is_dense(task); },
       .inert_when = "kind is neither segment nor detect"},
      {.name = "inference",
       .member = choice<&T::inference>(),
       .sentence = "How a picture is evaluated, whose shorter side is made image_size: as a whole, or by "
                   "windows of image_size at two thirds of it, with the mean where they overlap.",
       .inert = segments_not,
       .inert_when = "kind is not segment"},
      {.name = "anchors",
       .member = &T::anchors,
       .sentence = "Side of the square anchors of each level of the pyramid, pixels; beside each there are "
                   "two of the "
                   "same area, twice as high and twice as wide.",
       .range = {1, 65536},
       .derived =
           [](const T& task) {
             return detects_not(task) ? Json(std::vector<int>{}) : Json({32, 64, 128, 256, 512});
           },
       .derived_text = "`[32, 64, 128, 256, 512]`",
       .inert = detects_not,
       .inert_when = "kind is not detect"},
      {.name = "proposals",
       .member = &T::proposals,
       .sentence = "Boxes in which there may be a thing: so many of an image in training, half as many in "
                   "evaluation.",
       .range = {2, 100000},
       .inert = detects_not,
       .inert_when = "kind is not detect"},
      {.name = "sampled",
       .member = &T::sampled,
       .sentence =
           "Of them those that the losses of an image count, a quarter of them of things where there are "
           "as many; of anchors half as many.",
       .range = {4, 100000},
       .inert = detects_not,
       .inert_when = "kind is not detect"},
      {.name = "box_width",
       .member = &T::box_width,
       .sentence = "Width of the two layers before boxes and classes.",
       .range = {1, 65536},
       .inert = detects_not,
       .inert_when = "kind is not detect"},
      {.name = "mask_width",
       .member = &T::mask_width,
       .sentence = "Channels of the four convolutions before masks.",
       .range = {1, 65536},
       .inert = detects_not,
       .inert_when = "kind is not detect"},
      {.name = "prototypes",
       .member = &T::prototypes,
       .sentence = "Outputs of the head: what views are told apart by.",
       .range = {2, 1e6},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "bottleneck",
       .member = &T::bottleneck,
       .sentence = "Width before the last layer of the head, where features have length 1.",
       .range = {1, 65536},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "fixed_norm",
       .member = &T::fixed_norm,
       .sentence = "Whether the rows of the last layer keep length 1; otherwise their lengths are learned.",
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "local_views",
       .member = &T::local_views,
       .sentence = "Number of small crops of each image, which only the student sees, beside two crops of "
                   "data.image_size.",
       .range = {0, 64},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "local_size",
       .member = &T::local_size,
       .sentence = "Side of a small crop in pixels, at most data.image_size.",
       .range = {1, 4096},
       .inert = has_no_local_views,
       .inert_when = "kind is not dino, or local_views is 0"},
      {.name = "global_area",
       .member = &T::global_area,
       .sentence = "Smallest and largest area of a large crop, as a fraction of the image.",
       .range = {0, 1, true},
       .derived = [](const T& task) { return areas_of(task, 0.4, 1); },
       .derived_text = "`[0.4, 1]`",
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "local_area",
       .member = &T::local_area,
       .sentence = "Smallest and largest area of a small crop, as a fraction of the image.",
       .range = {0, 1, true},
       .derived = [](const T& task) { return areas_of(task, 0.05, 0.4); },
       .derived_text = "`[0.05, 0.4]`",
       .inert = has_no_local_views,
       .inert_when = "kind is not dino, or local_views is 0"},
      {.name = "blur",
       .member = &T::blur,
       .sentence = "Largest radius of the Gaussian blur of a crop, in pixels; 0 = no blur.",
       .range = {0, 100},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "student_temperature",
       .member = &T::student_temperature,
       .sentence = "Temperature of the softmax over the student's outputs.",
       .range = {1e-3, 10},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "teacher_temperature",
       .member = &T::teacher_temperature,
       .sentence = "Temperature of the softmax over the teacher's centred outputs.",
       .range = {1e-3, 10},
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "teacher_temperature_start",
       .member = &T::teacher_temperature_start,
       .sentence = "The teacher's temperature in the first epoch.",
       .range = {1e-3, 10},
       .inert =
           [](const T& task) { return distils_itself_not(task) || task.teacher_temperature_epochs == 0; },
       .inert_when = "kind is not dino, or teacher_temperature_epochs is 0"},
      {.name = "teacher_temperature_epochs",
       .member = &T::teacher_temperature_epochs,
       .sentence = "Epochs over which the temperature goes from teacher_temperature_start to "
                   "teacher_temperature; 0 = constant.",
       .range = kCount,
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "centre_momentum",
       .member = &T::centre_momentum,
       .sentence = "Momentum of the running mean of the teacher's outputs.",
       .range = kFraction,
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "teacher_momentum",
       .member = &T::teacher_momentum,
       .sentence =
           "Momentum of the teacher's weights in the first step; it rises to 1 along half a cosine over "
           "all steps.",
       .range = kFraction,
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "frozen_epochs",
       .member = &T::frozen_epochs,
       .sentence = "Epochs for which the last layer of the head is frozen.",
       .range = kCount,
       .inert = distils_itself_not,
       .inert_when = "kind is not dino"},
      {.name = "bank",
       .member = &T::bank,
       .sentence =
           "Number of training images, drawn once, among which nearest neighbours are looked for; 0 = all.",
       .range = kCount,
       .derived = [](const T& task) { return Json(distils_itself_not(task) ? 0 : 10'000); },
       .derived_text = "10000 of dino, otherwise 0",
       .inert = [](const T& task) { return !describes_images(task); },
       .inert_when = "kind is none of dino, probe-linear and probe-knn"},
      {.name = "blocks",
       .member = &T::blocks,
       .sentence = "The class token after each of so many last blocks, side by side, is what is classified.",
       .range = {1, 1000},
       .inert = is_no_linear_probe,
       .inert_when = "kind is not probe-linear"},
      {.name = "patch_mean",
       .member = &T::patch_mean,
       .sentence = "Whether the mean of the patches after the last block is classified with them.",
       .inert = is_no_linear_probe,
       .inert_when = "kind is not probe-linear"},
  };
  return kFields;
}

TaskConfig read_task(const Json& section, std::vector<Problem>& problems) {
  TaskConfig task;
  if (section.is_null()) return task;
  expect_keys(section, "task", names(task_fields()), problems);
  const std::size_t before = problems.size();
  read_fields(section, "task", task_fields(), task, problems);
  if (!section.contains("kind") && !is_misspelt("task.kind", problems) && problems.size() == before)
    problems.push_back(
        {"task.kind", fmt::format("missing; expected {}", any_of(abl::names_of<TaskKind>())), {}});
  reset_inert(task_fields(), task);
  return task;
}

bool has_batch_norm(const TaskConfig& task) { return is_dense(task); }

bool describes_images(const TaskConfig& task) {
  return task.kind == TaskKind::kDino || task.kind == TaskKind::kProbeLinear ||
         task.kind == TaskKind::kProbeKnn;
}

bool begins_longer_ones(const TrialConfig& trial) {
  const auto& recipe = trial.recipe;
  return trial.task.kind != TaskKind::kDino &&  // whose teacher follows by the share of all steps
         recipe.schedule == Schedule::kConstant && recipe.warmup == 0 &&
         recipe.weight_decay_end == recipe.weight_decay;
}

std::string unfit(const DataSet& set, TaskKind kind) {
  if (classes_of(set, kind) > 0) return {};
  std::vector<std::string> fit;
  for (const Task& task : tasks())
    if (classes_of(set, task.kind) > 0) fit.push_back(fmt::format("{{kind: {}}}", name_of(task.kind)));
  return fmt::format("{} has no labels of {}; expected task: {}", set.name, task_of(kind).unit, any_of(fit));
}

Json counted_task(const TaskConfig& task) {
  Json counted = canonical_section(task_fields(), task);
  for (const char* key : {"inference", "dropout", "global_area", "local_area", "blur", "student_temperature",
                          "teacher_temperature", "teacher_temperature_start", "teacher_temperature_epochs",
                          "centre_momentum", "teacher_momentum", "frozen_epochs", "bank"})
    counted.erase(key);
  return counted;
}

namespace {

void check_data(const TrialConfig& trial, std::vector<Problem>& problems) {
  if (trial.task.kind == TaskKind::kSegment && trial.data.classes > kMostLabels)
    problems.push_back(
        {"data.classes",
         fmt::format("{} labels of pixels; expected at most {}", trial.data.classes, kMostLabels),
         {}});
  if (is_dense(trial.task)) {
    if (trial.data.held_out > 0)
      problems.push_back(
          {"data.held_out", "of pictures with annotations, of which none are held out; expected 0", {}});
    if (trial.data.decode != Decode::kFull)
      problems.push_back({"data.decode", "of pictures with annotations; expected full", {}});
  }
}

/// Keys that say nothing of this task are refused, for a table would show them as if they did.
void check_recipe(const TrialConfig& trial, std::vector<Problem>& problems) {
  const Task& task = task_of(trial.task.kind);
  if (task.learns_nothing()) return;
  const Recipe* recipe = find_recipe(trial.recipe.use);
  if (recipe && recipe->task.value_or(task.kind) != task.kind) {
    problems.push_back({"recipe.use",
                        fmt::format("{} is for task: {{kind: {}}}; this one is of kind {}", recipe->name,
                                    name_of(*recipe->task), name_of(task.kind)),
                        {}});
    return;
  }
  const RecipeConfig unset, started = recipe ? recipe_for(*recipe, trial.model) : unset;
  std::vector<std::string> of_the_recipe;
  for (const auto& field : recipe_fields()) {
    if (task.heeds(field.name)) continue;
    const Json value = field.get(trial.recipe), otherwise = field.default_value(trial.recipe);
    if (value == otherwise || value == field.get(unset)) continue;
    if (value == field.get(started))
      of_the_recipe.emplace_back(field.name);
    else
      problems.push_back({fmt::format("recipe.{}", field.name),
                          fmt::format("{}: says nothing of a task of kind {}; expected {}", plain_text(value),
                                      name_of(task.kind), otherwise.empty() ? "none" : plain_text(otherwise)),
                          {}});
  }
  if (!of_the_recipe.empty())
    problems.push_back({"recipe.use",
                        fmt::format("{} sets {}, which say nothing of a task of kind {}", recipe->name,
                                    fmt::join(of_the_recipe, ", "), name_of(task.kind)),
                        {}});
  const auto& range = trial.recipe.scale_range;
  if (!range.empty() && (range.size() != 2 || range[0] > range[1]))
    problems.push_back(
        {"recipe.scale_range",
         fmt::format("[{}]; expected two numbers, the least and the largest", fmt::join(range, ", ")),
         {}});
  const auto& sides = trial.recipe.side_range;
  if (!sides.empty() && (sides.size() != 2 || sides[0] > sides[1] || (sides[1] - sides[0]) % 32 != 0))
    problems.push_back(
        {"recipe.side_range",
         fmt::format("[{}]; expected two numbers, the least and the largest, whole steps of 32 apart",
                     fmt::join(sides, ", ")),
         {}});
  if (!sides.empty() && !range.empty())
    problems.push_back({"recipe.scale_range", "recipe.side_range is set as well; expected one of them", {}});
  if (trial.recipe.patience == 0) return;
  const auto metric = trial.recipe.patience_metric.substr(trial.recipe.patience_metric.find('/') + 1);
  if (std::ranges::find(task.metrics, metric) == task.metrics.end())
    problems.push_back(
        {"recipe.patience_metric",
         fmt::format("{} is not measured with task.kind {}; expected one of val/{}",
                     trial.recipe.patience_metric, name_of(task.kind), fmt::join(task.metrics, ", val/")),
         {}});
}

/// Whether the backbone says of an image what is asked of it.
void check_features(const TrialConfig& trial, std::vector<Problem>& problems) {
  const auto& [model, data, recipe, task, seed] = trial;
  const Family& family = family_of(model);
  const auto refuse = [&](const char* key, std::string message) {
    problems.push_back({key, std::move(message), {}});
  };
  if (!family.describes_images) {
    std::vector<std::string> fit;
    for (const Family* other : families())
      if (other->describes_images) fit.emplace_back(other->name);
    refuse("model.family", fmt::format("{} does not support task.kind {}; expected {}", family.name,
                                       name_of(task.kind), any_of(fit)));
    return;
  }
  const bool has_small_crops = task.kind == TaskKind::kDino && task.local_views > 0;
  if (has_small_crops && task.local_size != data.image_size && !model.plugin.name.empty())
    refuse(
        "task.local_views",
        fmt::format("{} crops of {} pixels: a plugin's attention takes only images of {} pixels; expected 0",
                    task.local_views, task.local_size, data.image_size));
  if (has_small_crops && task.local_size > data.image_size)
    refuse("task.local_size",
           fmt::format("{} pixels; expected at most data.image_size, {}", task.local_size, data.image_size));
  else if (has_small_crops && task.local_size % model.patch != 0)
    refuse("task.local_size",
           fmt::format("{} pixels; expected a multiple of the patch of {}", task.local_size, model.patch));
  if (task.kind == TaskKind::kDino && task.frozen_epochs > 1 && task.frozen_epochs >= recipe.epochs)
    refuse("task.frozen_epochs",
           fmt::format("{} of {} epochs: the last layer would never be trained; expected fewer",
                       task.frozen_epochs, canonical_number(recipe.epochs)));
  if (task.kind == TaskKind::kDino)
    for (const auto& [key, area] :
         {std::pair{"task.global_area", &task.global_area}, {"task.local_area", &task.local_area}})
      if (!area->empty() && (area->size() != 2 || area->front() > area->back()))
        refuse(key, fmt::format("[{}]; expected [minimum, maximum]", fmt::join(*area, ", ")));
  const int most = family.name == "vit" ? model.depth : 1;
  if (task.blocks > most)
    refuse("task.blocks", most == 1
                              ? fmt::format("{}: the class token of {} is behind all blocks; expected 1",
                                            task.blocks, family.name)
                              : fmt::format("{} of {} blocks", task.blocks, most));
  if (task.patch_mean && family.name != "vit")
    refuse("task.patch_mean",
           fmt::format("true: the only feature of {} is its class token; expected false", family.name));
}

/// Whether the backbone gives the maps that the head stands on.
void check_backbone(const TrialConfig& trial, std::vector<Problem>& problems) {
  const Family& family = family_of(trial.model);
  const auto refuse = [&](const char* key, std::string message) {
    problems.push_back({key, std::move(message), {}});
  };
  if (family.maps == MapsOf::kNone) {
    std::vector<std::string> fit;
    for (const Family* other : families())
      if (other->maps != MapsOf::kNone) fit.emplace_back(other->name);
    refuse("model.family", fmt::format("{} gives no maps for a task of kind {}; expected {}", family.name,
                                       name_of(trial.task.kind), any_of(fit)));
    return;
  }
  const bool is_plain = family.maps == MapsOf::kLayers;
  constexpr std::size_t kLevels = 5;  // of a detector's pyramid: one is coarser than the backbone's maps
  if (trial.task.kind == TaskKind::kDetect && trial.task.anchors.size() != kLevels)
    refuse("task.anchors", fmt::format("{} sides of anchors; expected {}, of the levels of strides 4 to 64",
                                       trial.task.anchors.size(), kLevels));
  if (!is_plain && !stands_on_pyramid(trial.task))
    refuse("task.head",
           fmt::format("{} stands on maps of one size, and those of {} are of stages; expected {}",
                       name_of(trial.task.head), family.name, any_of({"semantic-fpn", "uper-net"})));
  if (is_plain && stands_on_pyramid(trial.task) && trial.model.patch != 8 && trial.model.patch != 16)
    refuse("model.patch",
           fmt::format("{} pixels: the pyramid below {} is of patches of 8 or of 16", trial.model.patch,
                       trial.task.kind == TaskKind::kDetect ? "Mask R-CNN" : name_of(trial.task.head)));
  const auto& layers = trial.task.layers;
  const int depth = is_plain ? layers_of(trial.model) : 0;
  if (is_plain && layers.empty() && depth < 4)
    refuse("model.depth",
           fmt::format("{} layers, and four maps come from a backbone; expected at least 4", depth));
  if (!layers.empty() && !is_plain)
    refuse("task.layers",
           fmt::format("of {}, whose maps are those of its stages; leave them out", family.name));
  else if (!layers.empty() && (layers.size() != 4 || layers.back() > depth ||
                               std::ranges::adjacent_find(layers, std::greater_equal<>{}) != layers.end()))
    refuse("task.layers",
           fmt::format("[{}]; expected four ascending ones of 1 to {}", fmt::join(layers, ", "), depth));
}

}  // namespace

void check_task(const TrialConfig& trial, std::vector<Problem>& problems) {
  check_data(trial, problems);
  check_recipe(trial, problems);
  if (is_dense(trial.task)) check_backbone(trial, problems);
  if (describes_images(trial.task)) check_features(trial, problems);
}

}  // namespace abl::config
