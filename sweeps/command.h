// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sweeps/settings.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// `command:` of a sweep file: any program that speaks docs/trainer-protocol.md.
struct CommandSection {
  Command command;
  std::string data;  ///< logical data name that it needs, or empty
  Settings base;     ///< {"params": …}: what rows and factors change
};

CommandSection read_command(YamlReader& reader, const Node& section);

/// What a command trial is, without its seed: argv, params and the user's version.
nlohmann::json command_document(const Command& command, const nlohmann::json& params);

/// Whether a row or factor sets a param that `command.params` names; a problem otherwise, since a misspelt
/// param would be a new one.
bool expect_param(const Settings& base, const Assignment& assignment, Problems& problems);

}  // namespace abl::sweeps
