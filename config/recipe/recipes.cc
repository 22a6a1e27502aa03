// SPDX-License-Identifier: Apache-2.0
#include "config/recipe/recipes.h"

#include <algorithm>

#include "base/error.h"
#include "base/named_path.h"
#include "config/model/family.h"
#include "config/model/model_section.h"

namespace abl::config {

std::map<std::string, std::string> named_weights(const RecipeConfig& recipe) {
  std::map<std::string, std::string> named;
  if (!recipe.start_weights.empty()) named.emplace(recipe.start_weights, recipe.start_sha256);
  if (!recipe.teacher_weights.empty()) named.emplace(recipe.teacher_weights, recipe.teacher_sha256);
  return named;
}

std::map<std::string, std::string> named_files(const TrialConfig& trial) {
  auto named = named_weights(trial.recipe);
  const PluginConfig& plugin = trial.model.plugin;
  if (!plugin.name.empty()) named.emplace(plugin_key(plugin.name), plugin.sha256);
  return named;
}

namespace {

/// By sizes, not by name: a preset and its sizes written out are the same model.
bool same_size(const ModelConfig& a, const ModelConfig& b) {
  return a.family == b.family && a.dim == b.dim && a.depth == b.depth && a.stage_depths == b.stage_depths &&
         a.cardinality == b.cardinality && a.base_width == b.base_width;
}

/// The files are part of the program: a mistake in one is a mistake in the program.
void apply(const std::string& recipe, const Json& settings, RecipeConfig& config) {
  std::vector<Problem> problems;
  expect_keys(settings, recipe, names(recipe_fields()), problems);
  for (const auto& field : recipe_fields()) {
    const auto found = settings.find(field.name);
    if (found == settings.end()) continue;
    Json value = *found;
    if (accept_value(field.accepted(), fmt::format("{}.{}", recipe, field.name), value, problems))
      field.set(config, value);
  }
  if (!problems.empty())
    throw Error{Code::kInternal, fmt::format("config/recipes/{}.json: {}: {}", recipe, problems.front().path,
                                             problems.front().message)};
}

Recipe parse(std::string_view name, std::string_view text) {
  const auto file = Json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  Recipe recipe{.name = std::string{name},
                .sentence = file.at("sentence"),
                .task = value_named<TaskKind>(file.value("task", "")),
                .settings = file.at("settings"),
                .by_model = {}};
  const Json by_model = file.value("by_model", Json::object());
  for (const auto& [preset, settings] : by_model.items()) recipe.by_model.emplace_back(preset, settings);
  return recipe;
}

}  // namespace

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> kRecipes = [] {
    std::vector<Recipe> all;
    for (const auto& file : recipe_files()) all.push_back(parse(file.name, file.text));
    return all;
  }();
  return kRecipes;
}

const Recipe* find_recipe(std::string_view name) {
  const auto found = std::ranges::find(recipes(), name, &Recipe::name);
  return found == recipes().end() ? nullptr : &*found;
}

const Recipe* recipe_of_stored(const Json& section) {
  static const std::vector<Json> kSections = [] {
    std::vector<Json> all;
    for (const Recipe& recipe : recipes()) {
      auto config = recipe_for(recipe, ModelConfig{});
      if (config.weight_decay_end == 0) config.weight_decay_end = config.weight_decay;  // as a trial reads it
      all.push_back(canonical_section(recipe_fields(), config));
    }
    return all;
  }();
  const Recipe* nearest = nullptr;
  int most = 0;
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    const Json& own = kSections[i];
    int score = 0;
    for (const auto& [key, value] : own.items()) {
      const auto found = section.find(key);
      score += found != section.end() && *found == value ? 1 : -1;
    }
    for (const auto& [key, value] : section.items()) score -= own.contains(key) ? 0 : 1;
    if (score > most) most = score, nearest = &recipes()[i];
  }
  return nearest;
}

RecipeConfig recipe_for(const Recipe& recipe, const ModelConfig& model) {
  RecipeConfig config;
  config.use = recipe.name;
  apply(recipe.name, recipe.settings, config);
  for (const auto& [preset, settings] : recipe.by_model)
    if (same_size(model, model_of(*find_preset(preset)))) apply(recipe.name, settings, config);
  return config;
}

}  // namespace abl::config
