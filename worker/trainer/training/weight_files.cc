// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/sha256.h"
#include "config/document/trial_document.h"
#include "config/recipe/recipes.h"
#include "models/backbones/model_options.h"
#include "worker/trainer/tasks/model_factory.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::training {
namespace {

/// The first of some lines as one, and how many follow.
std::string first_of(const std::string& lines) {
  constexpr std::int64_t kShown = 3;
  const auto count = 1 + std::ranges::count(lines, '\n');
  std::istringstream rest{lines};
  std::string line, text;
  for (std::int64_t shown = 0; shown < kShown && std::getline(rest, line); ++shown)
    text += (shown == 0 ? "" : "; ") + line;
  if (count > kShown) text += fmt::format("; … and {} more", count - kShown);
  return fmt::format("{} {}: {}", count, count == 1 ? "tensor" : "tensors", text);
}

}  // namespace

models::LoadedWeights fit_weights(models::Classifier& model, const models::State& state,
                                  const std::string& what, const models::WeightsOptions& options) {
  try {
    return models::load_weights(model, state, options);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    throw Error{error.code(), fmt::format("{} does not fit the model in {}", what, first_of(error.what()))};
  }
}

namespace {

const std::filesystem::path& file_of(const std::string& name, const WeightFiles& files) {
  const auto found = files.find(name);
  if (found == files.end())
    throw Error{
        Code::kNotFound,
        fmt::format("no file for the weights {0}: start the worker or trainer with --weights {0}=FILE",
                    name)};
  return found->second;
}

models::LoadedWeights load(models::Classifier& model, const std::string& name, const WeightFiles& files,
                           const models::WeightsOptions& options) {
  const auto& file = file_of(name, files);
  return fit_weights(model, read_weights(file), fmt::format("weights {}: {}", name, file.string()), options);
}

}  // namespace

WeightDigests weight_digests(const config::RecipeConfig& recipe, const WeightFiles& files) {
  WeightDigests digests;
  const auto add = [&](const std::string& name, const std::string& wanted) {
    if (name.empty()) return;
    const auto& file = file_of(name, files);
    const auto digest = sha256_file(file);
    if (!wanted.empty() && digest != wanted)
      throw Error{Code::kFailedPrecondition,
                  fmt::format("weights {}, {}: its SHA-256 is {}; the recipe requires {}", name,
                              file.string(), digest, wanted)};
    digests[name] = digest;
  };
  add(recipe.start_weights, recipe.start_sha256);
  add(recipe.teacher_weights, recipe.teacher_sha256);
  return digests;
}

std::string start_from_weights(models::Classifier& model, const config::RecipeConfig& recipe,
                               const WeightFiles& files) {
  if (recipe.start_weights.empty()) return {};
  const auto loaded = load(model, recipe.start_weights, files,
                           {.fresh_head = true, .resize_positions = true, .other_patch = true});
  std::string text = fmt::format("starts from the weights {}", recipe.start_weights);
  if (!loaded.fresh.empty()) text += fmt::format("; as in a new model: {}", fmt::join(loaded.fresh, ", "));
  if (!loaded.resized.empty()) text += fmt::format("; resized: {}", fmt::join(loaded.resized, ", "));
  return text;
}

namespace {

/// The teacher whose model its file says, on the trial's images.
models::ModelOptions options_of_its_file(const config::TrialConfig& trial, const WeightFiles& files) {
  const auto& file = file_of(trial.recipe.teacher_weights, files);
  const std::string text = read_model_text(file);
  if (text.empty())
    throw Error{
        Code::kInvalidArgument,
        fmt::format("weights {}: {} does not say which model it is of; expected a checkpoint of this trainer",
                    trial.recipe.teacher_weights, file.string())};
  const auto document = config::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    throw Error{Code::kDataLoss, fmt::format("weights {}: {} says a model that is no JSON",
                                             trial.recipe.teacher_weights, file.string())};
  auto teacher = config::read_model_or_throw(document);
  if (teacher.data.classes != trial.data.classes)
    throw Error{Code::kInvalidArgument,
                fmt::format("weights {}: of a model with {} classes; the trial has {}",
                            trial.recipe.teacher_weights, teacher.data.classes, trial.data.classes)};
  teacher.data.image_size = trial.data.image_size;
  return tasks::model_options(teacher.model, teacher.data);
}

}  // namespace

std::shared_ptr<models::Classifier> load_teacher(const config::TrialConfig& trial, const WeightFiles& files) {
  const auto& recipe = trial.recipe;
  if (recipe.distillation == config::Distillation::kNone) return nullptr;
  auto teacher = models::build(recipe.teacher == config::kTeacherTrial ? options_of_its_file(trial, files)
                                                                       : tasks::teacher_options(trial));
  load(*teacher, recipe.teacher_weights, files, {.resize_positions = true});
  teacher->eval();
  for (auto& parameter : teacher->parameters()) parameter.requires_grad_(false);
  return teacher;
}

}  // namespace abl::training
