// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/command_line.h"

namespace abl::commands {

// One file for each: adds its flags to `app` and returns what it does.
Run declare_train(CLI::App& app);
Run declare_describe(CLI::App& app);
Run declare_eval(CLI::App& app);
Run declare_export(CLI::App& app);
Run declare_verify(CLI::App& app);
Run declare_infer(CLI::App& app);
Run declare_probe(CLI::App& app);
Run declare_presets(CLI::App& app);
Run declare_calibrate(CLI::App& app);
Run declare_plugin(CLI::App& app);

}  // namespace abl::commands
