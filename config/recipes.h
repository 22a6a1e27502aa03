// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/trial_document.h"

namespace abl::config {

/// A training recipe by name: one file of config/recipes.
struct Recipe {
  std::string name;
  std::string sentence;
  Json settings;  ///< keys of `recipe`
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
