// SPDX-License-Identifier: Apache-2.0
#include "cli/suggestion.h"

#include "config/nearest_name.h"

namespace abl::cli {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
  const std::string nearest = config::nearest_name(word, words);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace abl::cli
