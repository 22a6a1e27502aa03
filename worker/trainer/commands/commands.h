// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <functional>

namespace abl::trainer {

/// Carries out a parsed command; returns the exit code. Throws: Error, which `main` turns into a line and an
/// exit code.
using Run = std::function<int()>;

// One file for each: adds its flags to `app` and returns what it does.
Run declare_train(CLI::App& app);
Run declare_describe(CLI::App& app);
Run declare_eval(CLI::App& app);
Run declare_export(CLI::App& app);
Run declare_verify(CLI::App& app);
Run declare_infer(CLI::App& app);
Run declare_presets(CLI::App& app);
Run declare_data(CLI::App& app);  ///< and its own commands:
Run declare_data_check(CLI::App& app);
Run declare_data_format(CLI::App& app);
Run declare_data_pack(CLI::App& app);

/// From now on SIGTERM, SIGINT and, unless it is ignored as under nohup, SIGHUP raise what is returned,
/// instead of ending the program.
const std::atomic<bool>& stop_on_signals();
/// Raises it as those signals do. Thread: any.
void ask_to_stop();

}  // namespace abl::trainer
