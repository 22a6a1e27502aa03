// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field_table.h"
#include "config/json.h"
#include "config/trial_config.h"

namespace abl::config {

/// The one table of the section `recipe`.
const std::vector<Field<RecipeConfig>>& recipe_fields();

/// The weights that a recipe names, start and teacher: logical name -> SHA-256 of the file, or empty for any
/// of that name.
std::map<std::string, std::string> named_weights(const RecipeConfig& recipe);

/// The same with the plugin of the trial's model, as `plugin_key` names it: all that it takes from its worker
/// by name.
std::map<std::string, std::string> named_files(const TrialConfig& trial);

/// `teacher` of a recipe that learns from the model of another trial, the one whose weights `teacher_weights`
/// are: the file says which model that is.
inline constexpr const char* kTeacherTrial = "trial";

/// A file of config/recipes, as it is: JSON with comments.
struct RecipeFile {
  std::string_view name;  ///< without .json
  std::string_view text;
};

/// All of them, part of the program (cmake/EmbedRecipes.cmake).
std::span<const RecipeFile> recipe_files();

/// A training recipe by name: one file of config/recipes.
struct Recipe {
  std::string name;
  std::string sentence;
  std::optional<TaskKind> task;  ///< that it is for alone
  Json settings;                 ///< keys of `recipe`
  /// What it sets otherwise for a preset's model, whether the preset or its sizes written out name that.
  std::vector<std::pair<std::string, Json>> by_model;
};

/// In the order in which the reference lists them.
const std::vector<Recipe>& recipes();
/// Null when there is none of that name.
const Recipe* find_recipe(std::string_view name);

/// The recipe that a stored document (its section `recipe`) was made with, which it no longer names: the one
/// whose settings it shares most of. Null where it differs from each in as many as it shares.
const Recipe* recipe_of_stored(const Json& section);

/// The settings of a recipe for one model.
RecipeConfig recipe_for(const Recipe& recipe, const ModelConfig& model);

}  // namespace abl::config
