// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

/// What all programs say alike about a command line that they cannot take.
namespace abl {

/// Carries out a parsed command; returns the exit code.
/// Throws: Error, which `main` turns into a line and an exit code.
using Run = std::function<int()>;

/// Throws: Error{kInvalidArgument} for the first command or flag that `app` does not have, with the nearest
/// that it has. CLI11 says so only after other complaints, and names nothing.
void check_spelling(const CLI::App& app, int argc, const char* const* argv);

/// CLI11's complaint as one line that ends with where help is.
std::string complaint(const CLI::App& app, const CLI::ParseError& error);

/// --help in plain words, as 'ablate' has it: the kind of a flag's value, what it is without the flag, and
/// nothing of the parser's own. Of all commands that are added later.
void use_plain_help(CLI::App& app);

/// --log-format, or $ABLATE_LOG_FORMAT: how this program writes its log (base/log.h) once it is parsed.
CLI::Option* add_log_format(CLI::App& app);

/// A check for one of these words; its complaint names the nearest.
CLI::Validator one_of(const std::vector<std::string>& words);

/// A check for a number of seconds, 0 or more.
CLI::Validator seconds();

/// A check for a whole number within bounds; its complaint names them.
CLI::Validator whole_number(long long lowest, long long highest);

}  // namespace abl
