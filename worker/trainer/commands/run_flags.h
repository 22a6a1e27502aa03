// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "worker/trainer/commands/plugin_flag.h"
#include "worker/trainer/training/training.h"

namespace abl::commands {

/// What a run needs beside its own flags: the trial, its data and weights, threads and device.
struct RunFlags {
  training::TrainingOptions options;
  std::string config_file;
  std::vector<std::string> settings;  ///< "recipe.epochs=2"
  std::vector<std::string> weights;   ///< "NAME=FILE"
  PluginFlag plugins;
  bool deterministic = false;

  void declare(CLI::App& app);
  /// Reads the trial and judges the rest. Throws: Error naming the flag or the key of the document.
  void read();
  /// The same, but that the device is here.
  void read_trial();
  /// The flags that another program takes the same run by.
  std::vector<std::string> arguments() const;
};

}  // namespace abl::commands
