// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

/// What all programs say alike about a command line that they cannot take.
namespace abl {

/// Throws: Error{kInvalidArgument} for the first command or flag that `app` does not have, with the nearest
/// that it has. CLI11 says so only after other complaints, and names nothing.
void check_spelling(const CLI::App& app, int argc, const char* const* argv);

/// CLI11's complaint as one line that ends with where help is.
std::string complaint(const CLI::App& app, const CLI::ParseError& error);

/// A check for a whole number within bounds; its complaint names them.
CLI::Validator whole_number(long long lowest, long long highest);

}  // namespace abl
