// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/document/trial_document.h"
#include "worker/trainer/commands/plugin_flag.h"

namespace abl::commands {

/// What a document does not say beside its model becomes that of its preset, its recipe one that fits its
/// task: a description needs none.
/// `settings`: changes to be made to it, which may choose another task.
void complete_model(config::Json& document, const std::vector<std::string>& settings);

/// Which model a command is about: a preset or a trial's document, and changes to it.
struct ModelSource {
  std::string preset;
  std::string config_file;
  std::vector<std::string> settings;  ///< "model.depth=6"
  PluginFlag plugins;

  /// --preset, --config and --set. Returns: the group of the first two, of which one is required.
  CLI::Option_group* declare(CLI::App& app);
  /// The trial that they describe; a preset is taken at its own image size, with ImageNet's classes.
  /// Throws: Error listing every problem, a line each.
  config::TrialConfig trial() const;
};

}  // namespace abl::commands
