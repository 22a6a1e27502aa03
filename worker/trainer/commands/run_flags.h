// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "worker/trainer/training.h"

namespace abl::trainer {

/// What a run needs beside its own flags: the trial, its data and weights, threads and device.
struct RunFlags {
  TrainingOptions options;
  std::string config_file;
  std::vector<std::string> weights;  ///< "NAME=FILE"
  bool deterministic = false;

  void declare(CLI::App& app);
  /// Reads the trial and judges the rest. Throws: Error naming the flag or the key of the document.
  void read();
};

}  // namespace abl::trainer
