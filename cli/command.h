// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "cli/context.h"

namespace abl::cli {

/// One command of the program: `declare` adds its flags to `app` and returns what it does. Each file of
/// cli/commands/ defines one, k<Name>Command; no list names them.
struct Command {
  int place;  ///< in `--help`, which lists commands in this order
  const char* name;
  const char* summary;
  const char* example;                     ///< one or more lines, without indent
  const char* success = "done";            ///< what exit code 0 means
  const char* failure = "internal error";  ///< what exit code 1 means
  Run (*declare)(CLI::App& app, Context& context);
};

/// Every command of cli/commands/, by file name.
std::span<const Command* const> all_commands();
/// The same, by place.
const std::vector<const Command*>& commands();

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

}  // namespace abl::cli
