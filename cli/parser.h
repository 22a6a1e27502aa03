// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cli/command.h"

namespace abl::cli {

/// The program's grammar: every command with its flags, help and exit codes. `chosen` is set to what the
/// given command does. `context` and `chosen` must outlive it.
std::unique_ptr<CLI::App> make_parser(Context& context, Run& chosen);

/// Parses and runs. Never throws: errors are printed to stderr, a line each. Returns: the exit code.
int run_ablate(int argc, const char* const* argv);

}  // namespace abl::cli
