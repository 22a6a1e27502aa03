// SPDX-License-Identifier: Apache-2.0
#include "config/named_weights.h"

namespace abl::config {

std::map<std::string, std::string> named_weights(const RecipeConfig& recipe) {
  std::map<std::string, std::string> named;
  if (!recipe.start_weights.empty()) named.emplace(recipe.start_weights, recipe.start_sha256);
  if (!recipe.teacher_weights.empty()) named.emplace(recipe.teacher_weights, recipe.teacher_sha256);
  return named;
}

}  // namespace abl::config
