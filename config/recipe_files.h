// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace abl::config {

/// A file of config/recipes, as it is: JSON with comments.
struct RecipeFile {
  std::string_view name;  ///< without .json
  std::string_view text;
};

/// All of them, part of the program (cmake/EmbedRecipes.cmake).
std::span<const RecipeFile> recipe_files();

}  // namespace abl::config
