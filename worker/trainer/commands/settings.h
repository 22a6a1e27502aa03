// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "config/document/trial_document.h"

namespace abl::commands {

/// --set: changes to a trial's document, such as "model.depth=6".
void declare_settings(CLI::App& app, std::vector<std::string>& settings);

/// Makes the changes. Throws: Error{kInvalidArgument} naming a setting that has no place in the document.
void change_settings(config::Json& document, const std::vector<std::string>& settings);

}  // namespace abl::commands
