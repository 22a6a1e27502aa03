// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/trial_config.h"

namespace abl::config {

/// A training recipe by name. `recipe.use` names it too.
struct Recipe {
  RecipeConfig recipe;
  std::string sentence;
};

const std::vector<Recipe>& recipes();
/// Null when there is none of that name.
const Recipe* find_recipe(std::string_view name);

/// What `msf-imagenet` sets by model.
struct BySize {
  std::string_view preset;
  int batch;
  double mixing_alpha;
};
std::span<const BySize> msf_by_size();

/// The settings of a recipe for one model: some recipes set batch and mixing strength by the model's size.
RecipeConfig recipe_for(const Recipe& recipe, const ModelConfig& model);

}  // namespace abl::config
