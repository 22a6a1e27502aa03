// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "config/document/trial_document.h"
#include "config/recipe/recipes.h"
#include "config/task/task_section.h"
#include "models/backbones/model_options.h"
#include "models/weights/state.h"
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

/// Where names would be the model's but for what stands before them: that. A state of which all names have it
/// is read without it, so that others are among these. Empty: it is not so.
std::string prefix_hint(const torch::nn::Module& model, const models::State& state) {
  const auto own = models::state_of(model);
  std::map<std::string, std::int64_t> known;  // by prefix, how many names
  for (const auto& [name, tensor] : state)
    for (auto dot = name.find('.'); dot != name.npos && !own.contains(name); dot = name.find('.', dot + 1))
      if (own.contains(name.substr(dot + 1))) ++known[name.substr(0, dot + 1)];
  const auto most = std::ranges::max_element(known, {}, [](const auto& entry) { return entry.second; });
  if (most == known.end() || 2 * most->second < static_cast<std::int64_t>(own.size())) return {};
  return fmt::format(
      "; {} of its {} names are the model's behind '{}': expected them without it, and no others",
      most->second, state.size(), most->first);
}

}  // namespace

models::LoadedWeights fit_weights(torch::nn::Module& model, const models::State& state,
                                  const std::string& what, const models::WeightsOptions& options) {
  try {
    return models::load_weights(model, state, options);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    throw Error{error.code(), fmt::format("{} does not fit the model in {}{}", what, first_of(error.what()),
                                          prefix_hint(model, state))};
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

/// Weights that a recipe names, and what their file says of the model.
struct NamedWeights {
  std::string what;  ///< "weights NAME: FILE"
  models::State weights;
  config::Json document;  ///< null where it says nothing, as that of another trainer
};

NamedWeights read_named(const std::string& name, const WeightFiles& files) {
  const auto& file = file_of(name, files);
  auto [weights, model] = read_weights_file(file);
  NamedWeights named{.what = fmt::format("weights {}: {}", name, file.string()),
                     .weights = std::move(weights),
                     .document = nullptr};
  if (model.empty()) return named;
  named.document = config::Json::parse(model, nullptr, /*allow_exceptions=*/false);
  if (!named.document.is_object())
    throw Error{Code::kDataLoss, named.what + " has an invalid model description; expected a JSON object"};
  return named;
}

/// What the model's images were normalised with; nothing where its file does not say, as that of another
/// trainer or of an older release.
std::optional<config::DataConfig> normalisation_of(const NamedWeights& named) {
  config::DataConfig data;
  for (const auto& [key, numbers] : {std::pair{"/data/mean", &data.mean}, {"/data/std", &data.std}}) {
    const config::Json::json_pointer pointer{key};
    if (!named.document.contains(pointer)) return std::nullopt;
    const auto& list = named.document.at(pointer);
    const double least = numbers == &data.std ? std::numeric_limits<double>::min() : 0;  // it divides
    const bool fits =
        list.is_array() && list.size() == 3 && std::ranges::all_of(list, [&](const auto& number) {
          return number.is_number() && number.template get<double>() >= least;
        });
    if (!fits) throw Error{Code::kDataLoss, fmt::format("{} says {} {}", named.what, key, list.dump())};
    *numbers = list.get<std::vector<double>>();
  }
  return data;
}

std::string normalised_text(const config::DataConfig& data) {
  return fmt::format("mean [{}] and std [{}]", fmt::join(data.mean, ", "), fmt::join(data.std, ", "));
}

}  // namespace

WeightDigests weight_digests(const config::RecipeConfig& recipe, const WeightFiles& files) {
  WeightDigests digests;
  const auto add = [&](const std::string& name, const std::string& wanted) {
    if (name.empty()) return;
    const auto& file = file_of(name, files);
    const auto digest = sha256_file(file);
    if (!wanted.empty() && digest != wanted)
      throw OtherFile{fmt::format("weights {}, {}: its SHA-256 is {}; the recipe requires {}", name,
                                  file.string(), digest, wanted)};
    digests[name] = digest;
  };
  add(recipe.start_weights, recipe.start_sha256);
  add(recipe.teacher_weights, recipe.teacher_sha256);
  return digests;
}

namespace {

/// Into a classifier as it is. Of another network into each backbone, which may lack the head and what is
/// before it: by way of a classifier. What a classifier has none of, the norms of a Swin's stages, is new.
models::LoadedWeights start_backbones(torch::nn::Module& model, const config::TrialConfig& trial,
                                      const NamedWeights& named) {
  const models::WeightsOptions options{.fresh_head = true, .resize_positions = true, .other_patch = true};
  if (!config::is_said(trial.task)) return fit_weights(model, named.weights, named.what, options);
  const auto whole = models::build(tasks::model_options(trial.model, trial.data));
  auto loaded = fit_weights(*whole, named.weights, named.what, options);
  const auto from = models::state_of(*whole);
  const torch::NoGradGuard no_grad;
  for (auto* backbone : models::classifiers_in(model))
    for (auto& [name, tensor] : models::state_of(*backbone)) {
      if (const auto given = from.find(name); given != from.end())
        tensor.copy_(given->second);
      else if (std::ranges::find(loaded.fresh, name) == loaded.fresh.end())
        loaded.fresh.push_back(name);
    }
  return loaded;
}

}  // namespace

std::string start_from_weights(torch::nn::Module& model, const config::TrialConfig& trial,
                               const WeightFiles& files) {
  const auto& recipe = trial.recipe;
  if (recipe.start_weights.empty()) return {};
  const auto named = read_named(recipe.start_weights, files);
  const auto loaded = start_backbones(model, trial, named);
  std::string text = fmt::format("starts from the weights {}", recipe.start_weights);
  if (!loaded.prefix.empty()) text += fmt::format("; names without their prefix {}", loaded.prefix);
  if (!loaded.fresh.empty()) text += fmt::format("; as in a new model: {}", fmt::join(loaded.fresh, ", "));
  if (!loaded.resized.empty()) text += fmt::format("; resized: {}", fmt::join(loaded.resized, ", "));
  const auto before = normalisation_of(named);
  if (before && (before->mean != trial.data.mean || before->std != trial.data.std))
    text +=
        fmt::format("; they were trained on images with {}, and this trial has others (data.mean, data.std)",
                    normalised_text(*before));
  return text;
}

namespace {

/// The teacher whose model its file says, on the trial's images.
models::ModelOptions options_of_its_file(const config::TrialConfig& trial, const NamedWeights& named) {
  if (named.document.is_null())
    throw Error{Code::kInvalidArgument,
                named.what + " has no model description; expected a checkpoint written by ablate-trainer"};
  auto teacher = config::read_model_or_throw(named.document);
  if (teacher.data.classes != trial.data.classes)
    throw Error{Code::kInvalidArgument,
                fmt::format("weights {}: of a model with {} classes; the trial has {}",
                            trial.recipe.teacher_weights, teacher.data.classes, trial.data.classes)};
  teacher.data.image_size = trial.data.image_size;
  return tasks::model_options(teacher.model, teacher.data);
}

}  // namespace

tasks::Teacher load_teacher(const config::TrialConfig& trial, const WeightFiles& files,
                            torch::Device device) {
  const auto& recipe = trial.recipe;
  if (recipe.distillation == config::Distillation::kNone) return {};
  const auto named = read_named(recipe.teacher_weights, files);
  tasks::Teacher teacher{.model = models::build(recipe.teacher == config::kTeacherTrial
                                                    ? options_of_its_file(trial, named)
                                                    : tasks::teacher_options(trial))};
  fit_weights(*teacher.model, named.weights, named.what, {.resize_positions = true});
  teacher.model->eval();
  for (auto& parameter : teacher.model->parameters()) parameter.requires_grad_(false);
  teacher.model->to(device);
  if (const auto own = normalisation_of(named)) {
    teacher.sees = {trial.data, *own, device};
    if (teacher.sees)
      teacher.note = fmt::format("the teacher {} sees images as it was trained with them, with {}",
                                 recipe.teacher_weights, normalised_text(*own));
  } else {
    teacher.note = fmt::format(
        "the teacher {} sees images as its student does, with {}: its file records no "
        "normalisation",
        recipe.teacher_weights, normalised_text(trial.data));
  }
  return teacher;
}

}  // namespace abl::training
