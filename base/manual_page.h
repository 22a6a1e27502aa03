// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace abl {

/// The man page of a program (section 1, roff) from the declarations that --help prints: every command with
/// its arguments, flags, example and exit codes.
std::string manual_page(const CLI::App& app);

/// Adds --man, which prints that page: `ablate --man | man -l -`.
void add_manual_flag(CLI::App& app);

}  // namespace abl
