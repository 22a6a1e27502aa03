// SPDX-License-Identifier: Apache-2.0
#include "config/document/trial_document.h"

#include <algorithm>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "config/data/data_sets.h"
#include "config/model/family.h"
#include "config/model/model_section.h"
#include "config/model/shape_rules.h"
#include "config/recipe/evaluation_size.h"
#include "config/recipe/recipes.h"
#include "config/task/task_section.h"
#include "config/tasks.h"

namespace abl::config {
namespace {

constexpr const char* kCheckpointBlocks = "checkpoint_blocks";
/// In pixels: how a stored document says recipe.eval_crop_ratio. What evaluates the same has the same text,
/// and trials that were stored before there was a ratio keep theirs.
constexpr const char* kEvalResize = "eval_resize";
constexpr Range kEvalResizeRange{0, 65536};

/// Who wrote a document. Stored ones are canonical: they name neither preset nor recipe.
enum class Origin { kWritten, kStored };

Origin origin_of(const Json& document) {
  const auto names = [&](const char* section, const char* key) {
    return document.contains(Json::json_pointer{fmt::format("/{}/{}", section, key)});
  };
  return names("model", "preset") || names("recipe", "use") ? Origin::kWritten : Origin::kStored;
}

/// `document[key]`, an empty mapping with a problem where it is missing or no mapping.
Json section_of(const Json& document, const char* key, std::vector<Problem>& problems) {
  if (!document.contains(key)) {
    if (!is_misspelt(key, problems)) problems.push_back({key, "missing; expected a mapping", {}});
    return nullptr;
  }
  return expect_mapping(document[key], key, problems) ? document[key] : Json(nullptr);
}

/// `document.task`, null where it is missing or no mapping.
Json task_section_of(const Json& document, std::vector<Problem>& problems) {
  const auto section = document.find("task");
  return section != document.end() && expect_mapping(*section, "task", problems) ? *section : Json(nullptr);
}

/// What `data.image_size` is where the document does not say; 0 where nothing does.
int usual_image_size(const DataSet* known, const ModelConfig& model) {
  const Preset* preset = find_preset(model.preset);
  if (preset && preset->gives_image_size && (!known || known->any_size)) return preset->image_size;
  return known ? known->image_size : 0;
}

DataConfig read_data(const Json& section, const ModelConfig& model, TaskKind task, Origin origin,
                     std::vector<Problem>& problems) {
  DataConfig data;
  if (section.is_null()) return data;
  const std::string* name = text_at(section, "name");
  const DataSet* known = name ? find_data_set(*name) : nullptr;
  if (known) {
    if (std::string wrong = unfit(*known, task); !wrong.empty())
      problems.push_back({"data.name", std::move(wrong), {}});
    data.classes = std::max(2, classes_of(*known, task));
    data.train_images = known->train_images;
    data.val_images = known->val_images;
  }
  data.image_size = usual_image_size(known, model);
  expect_keys(section, "data", names(data_fields()), problems);
  read_fields(section, "data", data_fields(), data, problems);
  if (!section.contains("name")) {
    if (!is_misspelt("data.name", problems))
      problems.push_back({"data.name", "missing; expected the logical name of a data set", {}});
  } else if (!data.name.empty()) {
    std::vector<std::string> sets;
    for (const auto& set : data_sets()) sets.emplace_back(set.name);
    const std::string remedy =
        fmt::format("; unknown data set '{}'{}", data.name, did_you_mean(data.name, sets));
    expect_required(data_fields(), data, "data", remedy, section, problems);
  }
  const int classes = known ? classes_of(*known, task) : 0;
  if (origin == Origin::kWritten && classes > 0 && data.classes != classes && data.classes > 1)
    problems.push_back({"data.classes",
                        fmt::format("{} of {}, which has {}; another data set needs another name",
                                    data.classes, known->name, classes),
                        {}});
  if (origin == Origin::kWritten && known && !known->embedded && data.train_images > known->images)
    problems.push_back(
        {"data.train_images",
         fmt::format("{0} is more than the {2} training images of {1}; expected at most {2}, or 0 for all",
                     data.train_images, known->name, known->images),
         {}});
  if (data.held_out >= 1 && (data.held_out < 2 || data.held_out != std::floor(data.held_out)))
    problems.push_back({"data.held_out",
                        fmt::format("{}; expected a part of the training images below 1, such as 0.1, or "
                                    "how many of them, a whole number from 2",
                                    canonical_number(data.held_out)),
                        {}});
  else if (const std::int64_t images = known_training_images(data); images > 0)
    if (const std::string wrong = wrong_held_out(data, images, data.classes); !wrong.empty())
      problems.push_back({"data.held_out", wrong, {}});
  if (known && known->embedded) {
    for (const char* key : {"train_images", "val_images"}) {
      if (section.contains(key) && section[key] == 0) {
        problems.push_back({std::string{"data."} + key,
                            fmt::format("0 images of {}; expected at least 1 to draw", *name),
                            {}});
      }
    }
  }
  for (const auto& [key, numbers] : {std::pair{"data.mean", &data.mean}, {"data.std", &data.std}})
    if (numbers->size() != 3)
      problems.push_back(
          {key, fmt::format("{} numbers; expected 3, of red, green and blue", numbers->size()), {}});
  reset_inert(data_fields(), data);
  return data;
}

/// What to write in place of the pixels: the ratio that they are, or the recipe's own where nobody means
/// them.
std::string ratio_to_write(int image_size, int side, const RecipeConfig& usual) {
  constexpr double kLeastMeant = 0.5;  // papers evaluate 0.875 to 1 of the side
  const double ratio = crop_ratio_of(image_size, side);
  if (ratio >= kLeastMeant)
    return fmt::format("write eval_crop_ratio: {}, which evaluates the same at {} pixels",
                       canonical_number(ratio), image_size);
  return fmt::format("at {} pixels {} leave {} of the side to see; write eval_crop_ratio: {}, as {}",
                     image_size, side, canonical_number(ratio), canonical_number(usual.eval_crop_ratio),
                     usual.use.empty() ? "by default" : usual.use + " has it");
}

/// Takes the evaluated pixels out of a recipe's section. Returns: the ratio that they are, of a stored
/// document. A file must say the ratio.
std::optional<double> take_eval_resize(Json& section, const RecipeConfig& usual, int image_size,
                                       Origin origin, std::vector<Problem>& problems) {
  const auto found = section.find(kEvalResize);
  if (found == section.end()) return std::nullopt;
  Json pixels = *found;
  section.erase(found);
  const std::string path = fmt::format("recipe.{}", kEvalResize);
  if (!accept_value({Kind::kInteger, kEvalResizeRange, {}, nullptr}, path, pixels, problems))
    return std::nullopt;
  if (origin == Origin::kStored) return crop_ratio_of(image_size, pixels.get<int>());
  problems.push_back({path,
                      fmt::format("pixels do not follow the image size; {}",
                                  ratio_to_write(image_size, pixels.get<int>(), usual)),
                      {}});
  return std::nullopt;
}

/// `lr` where it is written as that of another batch. Source: timm 1.0.31, train.py (--lr-base).
void scale_lr(const Json& section, RecipeConfig& recipe, std::vector<Problem>& problems) {
  if (recipe.lr_base == 0) return;
  if (section.contains("lr") && section.contains("lr_base")) {
    problems.push_back({"recipe.lr_base", "recipe.lr is set as well; expected one of them", {}});
    return;
  }
  const double ratio = std::max(1.0, static_cast<double>(recipe.batch)) / recipe.lr_base_batch;
  if (!section.contains("lr"))  // which stands in place of a recipe's base
    recipe.lr = recipe.lr_base * (recipe.lr_scaling == LrScaling::kSqrt ? std::sqrt(ratio) : ratio);
  recipe.lr_base = 0;
}

/// What does not fit together in a recipe, and with its model.
void check_parts(const RecipeConfig& recipe, const ModelConfig& model, std::vector<Problem>& problems) {
  if (recipe.trivial_augment && recipe.randaugment != "none")
    problems.push_back({"recipe.trivial_augment",
                        fmt::format("there is randaugment: {} as well; expected one of the two, and "
                                    "randaugment: none for this one",
                                    recipe.randaugment),
                        {}});
  if (recipe.patience > 0 && recipe.ema == 0 && recipe.patience_metric.starts_with("val_ema/"))
    problems.push_back({"recipe.patience_metric",
                        fmt::format("{}: recipe.ema is 0, so there is no running average to evaluate",
                                    recipe.patience_metric),
                        {}});
  if (family_of(model).plugin == PluginPart::kModel) {  // of which nothing here knows the inside
    if (recipe.dropout > 0) problems.push_back({"recipe.dropout", "of a plugin's model; expected 0", {}});
    for (const auto& [key, factor] :
         {std::pair{"head_lr", recipe.head_lr}, {"layer_decay", recipe.layer_decay}})
      if (factor != 1)
        problems.push_back({fmt::format("recipe.{}", key),
                            "not supported for a plugin's model, whose layers are unknown; expected 1",
                            {}});
  }
  if (recipe.position_dropout > 0 && !family_of(model).adds_positions)
    problems.push_back({"recipe.position_dropout",
                        fmt::format("{} of {}, which adds no positions to its tokens; expected 0",
                                    canonical_number(recipe.position_dropout), model.family),
                        {}});
}

RecipeConfig read_recipe(Json section, const ModelConfig& model, const TaskConfig& task,
                         const DataConfig& data, Origin origin, std::vector<Problem>& problems) {
  RecipeConfig recipe;
  if (section.is_null()) return recipe;
  const std::string* name = text_at(section, "use");
  if (const Recipe* used = name ? find_recipe(*name) : nullptr) recipe = recipe_for(*used, model);
  // not by the key's own range: that is a rule for what is written
  if (const auto ratio = take_eval_resize(section, recipe, data.image_size, origin, problems))
    recipe.eval_crop_ratio = *ratio;
  expect_keys(section, "recipe", names(recipe_fields()), problems);
  const bool recipe_meant = section.contains("use") || is_misspelt("recipe.use", problems);
  read_fields(section, "recipe", recipe_fields(), recipe, problems);
  scale_lr(section, recipe, problems);
  if (!recipe_meant) {
    std::vector<Field<RecipeConfig>> required;
    std::ranges::copy_if(recipe_fields(), std::back_inserter(required), [&](const auto& field) {
      return field.required && task_of(task.kind).heeds(field.name);
    });
    expect_required(required, recipe, "recipe", ", or a recipe that sets it (use)", section, problems);
  }
  reset_inert(recipe_fields(), recipe);
  if (const Task& known = task_of(task.kind); known.learns_nothing())
    for (const auto& field : recipe_fields())
      if (!known.heeds(field.name)) field.set(recipe, field.get(RecipeConfig{}));
  const auto demand = [&](bool missing, const char* key, const char* message) {
    if (missing && !is_misspelt(key, problems)) problems.push_back({key, message, {}});
  };
  const bool distils = recipe.distillation != Distillation::kNone;
  demand(distils && recipe.teacher.empty(), "recipe.teacher",
         "missing; distillation needs the teacher's preset");
  demand(distils && recipe.teacher_weights.empty(), "recipe.teacher_weights",
         "missing; distillation needs the name of the teacher's weights");
  if (recipe.accumulate > recipe.batch && recipe.batch > 0)
    problems.push_back({"recipe.accumulate",
                        fmt::format("{} parts of a batch of {} images; expected at most as many as images",
                                    recipe.accumulate, recipe.batch),
                        {}});
  if (const int blocks = layers_of(model); problems.empty() && recipe.checkpoint_blocks > blocks)
    problems.push_back(
        {"recipe.checkpoint_blocks",
         fmt::format("{} of a model of {} transformer blocks", recipe.checkpoint_blocks, blocks),
         {}});
  demand(recipe.schedule == Schedule::kStep && recipe.step_epochs.empty(), "recipe.step_epochs",
         "missing; the step schedule needs the epochs at which the learning rate goes down");
  check_parts(recipe, model, problems);
  if (!has_batch_norm(model) && !has_batch_norm(task))
    recipe.sync_batch_norm = false;  // nothing that it could change
  return recipe;
}

/// Weights bring what they were trained with, which is known of a preset's.
void assume_of_weights(TrialConfig& trial) {
  const Preset* preset = find_preset(trial.model.preset);
  if (!preset || preset->family != trial.model.family) return;
  if (const auto assume = family_of(trial.model).assume_of_weights)
    assume(trial.model, *preset, trial.data.image_size);
}

Json model_and_images(const TrialConfig& trial) {
  Json document{{"model", canonical_model(trial.model)},
                {"data", {{"image_size", trial.data.image_size}, {"classes", trial.data.classes}}}};
  if (is_said(trial.task)) document["task"] = counted_task(trial.task);
  return document;
}

void throw_if_any(const std::vector<Problem>& problems) {
  if (problems.empty()) return;
  std::string text;
  for (const Problem& problem : problems) {
    std::string line = fmt::format("{}: {}", problem.path, problem.message);
    if (!problem.nearest.empty()) line += fmt::format("; did you mean '{}'?", problem.nearest);
    text += (text.empty() ? "" : "\n") + printable_line(line);
  }
  throw Error{Code::kInvalidArgument, text};
}

/// What counts depend on, of a document that may say more or less.
TrialConfig read_counted(const Json& document, std::vector<Problem>& problems) {
  TrialConfig trial;
  if (!expect_mapping(document, "document", problems)) return trial;
  Json data = section_of(document, "data", problems);
  if (data.is_object() && !data.contains("name")) data["name"] = "any";  // counts do not depend on it
  trial.model = read_model(section_of(document, "model", problems), problems);
  trial.task = read_task(task_section_of(document, problems), problems);
  trial.data = read_data(data, trial.model, trial.task.kind, Origin::kStored, problems);
  if (problems.empty()) check_sizes(trial.model, trial.data, problems);
  const auto recipe = document.find("recipe");
  if (recipe != document.end() && recipe->is_object() && recipe->contains(kCheckpointBlocks) &&
      (*recipe)[kCheckpointBlocks].is_number_integer())
    trial.recipe.checkpoint_blocks = (*recipe)[kCheckpointBlocks];
  return trial;
}

TrialConfig read(const Json& document, Origin origin, std::vector<Problem>& problems) {
  TrialConfig trial;
  if (!expect_mapping(document, "trial", problems)) return trial;
  expect_keys(document, "", {"model", "data", "task", "recipe", "seed"}, problems);
  const std::size_t before = problems.size();
  trial.model = read_model(section_of(document, "model", problems), problems);
  trial.task = read_task(task_section_of(document, problems), problems);
  trial.data =
      read_data(section_of(document, "data", problems), trial.model, trial.task.kind, origin, problems);
  if (problems.size() == before) check_sizes(trial.model, trial.data, problems);
  trial.recipe = read_recipe(section_of(document, "recipe", problems), trial.model, trial.task, trial.data,
                             origin, problems);
  if (problems.size() == before) check_task(trial, problems);
  if (problems.size() == before && origin == Origin::kWritten && !trial.recipe.start_weights.empty())
    assume_of_weights(trial);
  if (document.contains("seed")) {
    Json seed = document["seed"];
    if (accept_value({Kind::kInteger, kSeedRange, {}, nullptr}, "seed", seed, problems))
      trial.seed = seed.get<std::int64_t>();
  }
  return trial;
}

}  // namespace

TrialConfig read_trial(const Json& document, std::vector<Problem>& problems) {
  return read(document, Origin::kWritten, problems);
}

TrialConfig read_trial_or_throw(const Json& document) {
  std::vector<Problem> problems;
  TrialConfig trial = read(document, origin_of(document), problems);
  throw_if_any(problems);
  return trial;
}

TrialConfig read_model_or_throw(const Json& document) {
  std::vector<Problem> problems;
  const auto trial = read_counted(document, problems);
  throw_if_any(problems);
  return trial;
}

TrialConfig read_teacher(const TrialConfig& trial, std::vector<Problem>& problems) {
  if (trial.recipe.teacher == kTeacherTrial) {
    problems.push_back({"recipe.teacher", "trial: which model that is its weights say alone", {}});
    return {};
  }
  std::vector<Problem> found;
  auto teacher =
      read_counted({{"model", {{"preset", trial.recipe.teacher}}},
                    {"data", {{"image_size", trial.data.image_size}, {"classes", trial.data.classes}}}},
                   found);
  for (const auto& [path, message, nearest] : found)
    problems.push_back(
        {"recipe.teacher", fmt::format("{}: {}: {}", trial.recipe.teacher, path, message), {}});
  if (found.empty()) assume_of_weights(teacher);  // it always has weights
  return teacher;
}

namespace {

/// A recipe's section without the keys that say nothing of the task.
Json of_the_task(Json recipe, const TaskConfig& task) {
  for (const auto& field : recipe_fields())
    if (!task_of(task.kind).heeds(field.name)) recipe.erase(field.name);
  return recipe;
}

}  // namespace

Json canonical_document(const TrialConfig& trial) {
  Json document = model_and_images(trial);
  document["data"] = canonical_section(data_fields(), trial.data);
  document["recipe"] = of_the_task(canonical_section(recipe_fields(), trial.recipe), trial.task);
  const int side = evaluation_side(trial.data.image_size, trial.recipe.eval_crop_ratio);
  if (side != trial.data.image_size) document["recipe"][kEvalResize] = side;
  document["seed"] = trial.seed;
  if (is_said(trial.task)) document["task"] = canonical_section(task_fields(), trial.task);
  return document;
}

Json full_document(const TrialConfig& trial) {
  Json document{{"model", full_model(trial.model)},
                {"data", full_section(data_fields(), trial.data)},
                {"recipe", of_the_task(full_section(recipe_fields(), trial.recipe), trial.task)},
                {"seed", trial.seed}};
  if (is_said(trial.task)) document["task"] = full_section(task_fields(), trial.task);
  return document;
}

Json effective_document(const TrialConfig& trial) {
  Json document{{"model", effective_model(trial.model)},
                {"data", effective_section(data_fields(), trial.data)},
                {"recipe", of_the_task(effective_section(recipe_fields(), trial.recipe), trial.task)},
                {"seed", trial.seed}};
  if (is_said(trial.task)) document["task"] = effective_section(task_fields(), trial.task);
  return document;
}

std::string canonical_text(const TrialConfig& trial) { return canonical_json(canonical_document(trial)); }

namespace {

Json counted_document(const TrialConfig& trial) {
  Json document = model_and_images(trial);
  if (trial.recipe.checkpoint_blocks > 0)
    document["recipe"][kCheckpointBlocks] = trial.recipe.checkpoint_blocks;
  return document;
}

}  // namespace

std::string canonical_model_text(const TrialConfig& trial) { return canonical_json(counted_document(trial)); }

std::string canonical_teacher_text(const TrialConfig& trial) {
  Json document = counted_document(trial);
  document["data"]["mean"] = trial.data.mean, document["data"]["std"] = trial.data.std;
  return canonical_json(document);
}

std::string config_hash(const std::string& canonical) { return sha256_hex(canonical); }

}  // namespace abl::config
