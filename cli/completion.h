// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace abl::cli {

/// The shells that there is a completion for.
inline const std::vector<std::string> kShells{"bash", "zsh", "fish"};

/// A script that completes commands, flags, the words and files that flags take, and the names of sweeps
/// (asked from 'ablate ls
/// --names'). It is made from the grammar, so it cannot miss a flag.
std::string completion_script(const CLI::App& parser, const std::string& shell);

}  // namespace abl::cli
