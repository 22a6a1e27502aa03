// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace abl::commands {

/// --plugin NAME=FILE, for a command that makes models.
struct PluginFlag {
  std::vector<std::string> given;

  void declare(CLI::App& app);
  /// From now on the trial's plugin lies where they say. Throws: Error{kInvalidArgument} for what is not
  /// NAME=FILE.
  void know() const;
};

}  // namespace abl::commands
