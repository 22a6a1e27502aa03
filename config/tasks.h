// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/trial_choices.h"

namespace abl::config {

/// What is known of a task by its kind.
struct Task {
  TaskKind kind;
  std::string_view sentence;
  std::string_view unit;                  ///< what is judged, in words: "images"
  std::vector<std::string_view> metrics;  ///< of an evaluation, behind the split's name; the first judges
  /// Keys of `recipe` that say nothing of it, and must be left as they are by default.
  std::vector<std::string_view> no_recipe_keys{};
  /// Of one that learns nothing, the only ones that say anything: others have no effect.
  std::vector<std::string_view> only_recipe_keys{};

  bool learns_nothing() const { return !only_recipe_keys.empty(); }
  /// Whether a key of `recipe` says anything of it.
  bool heeds(std::string_view recipe_key) const;
};

/// In the order in which the reference lists them; classification is the first.
std::span<const Task> tasks();
const Task& task_of(TaskKind kind);
/// Of that kind by its name; of another text, classification.
const Task& task_named(std::string_view kind);

}  // namespace abl::config
