// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "cli/context.h"

namespace abl::cli {

/// One command of the program: `declare` adds its flags to `app` and returns what it does.
struct Command {
  const char* name;
  const char* summary;
  const char* example;  ///< one or more lines, without indent
  const char* success;  ///< what exit code 0 means
  const char* failure;  ///< what exit code 1 means
  Run (*declare)(CLI::App& app, Context& context);
};

/// Every command, in the order in which `--help` lists them.
const std::vector<Command>& commands();

// Flags that several commands share.
void add_home(CLI::App& app, Context& context);       ///< --home
void add_json(CLI::App& app, Context& context);       ///< --json
void add_scheduler(CLI::App& app, Context& context);  ///< --home, --scheduler and --json
void add_source(CLI::App& app, Context& context);     ///< these and --store
/// The positional SWEEP; its name tells shell completion to offer the sweeps that there are.
CLI::Option* add_sweep(CLI::App& app, std::string& sweep);

/// A flag (or, without dashes, a positional) that takes one of a few words; a complaint names the nearest, or
/// what `meant` has for it: {"tex", "latex"}.
CLI::Option* add_choice(CLI::App& app, const std::string& name, std::string& value,
                        const std::vector<std::string>& words, const std::string& description,
                        const std::map<std::string, std::string>& meant = {});

// One file for each, in commands/.
Run declare_up(CLI::App& app, Context& context);
Run declare_down(CLI::App& app, Context& context);
Run declare_validate(CLI::App& app, Context& context);
Run declare_plan(CLI::App& app, Context& context);
Run declare_submit(CLI::App& app, Context& context);
Run declare_ls(CLI::App& app, Context& context);
Run declare_show(CLI::App& app, Context& context);
Run declare_watch(CLI::App& app, Context& context);
Run declare_logs(CLI::App& app, Context& context);
Run declare_verify(CLI::App& app, Context& context);
Run declare_cancel(CLI::App& app, Context& context);
Run declare_pause(CLI::App& app, Context& context);
Run declare_resume(CLI::App& app, Context& context);
Run declare_retry(CLI::App& app, Context& context);
Run declare_table(CLI::App& app, Context& context);
Run declare_export(CLI::App& app, Context& context);
Run declare_workers(CLI::App& app, Context& context);
Run declare_dashboard(CLI::App& app, Context& context);
Run declare_data(CLI::App& app, Context& context);
Run declare_completion(CLI::App& app, Context& context);

}  // namespace abl::cli
