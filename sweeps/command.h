// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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

/// `file_folder`: the sweep file's, absolute, or empty where nobody knows it.
CommandSection read_command(YamlReader& reader, const Node& section, const std::string& file_folder);

/// A path in the run's folder, in which `*` and `?` stand for parts of names; without "{run_dir}/" before it.
/// `example`: of one, for the message.
std::string read_run_path(YamlReader& reader, const Node& node, const std::string& field,
                          const std::string& example);

/// `command.metrics`: one place of numbers, or a list of them.
std::vector<protocol::MetricSource> read_metric_sources(YamlReader& reader, const Node& section);

/// Tells of a column whose metric none of the command's patterns finds though one of a like name is found: a
/// slip that would be seen after the training only.
void check_metric_columns(const Command& command, const TableSpec& table, const Node& columns,
                          Problems& problems);

/// What a command trial is, without its seed: argv with its places unfilled, params, the user's version, and
/// the folder, since names in argv start from it: `train.py` of another folder is another program.
nlohmann::json command_document(const Command& command, const nlohmann::json& params);

/// Why a row's params cannot fill the command's arguments: one that the base has is gone, since the row sets
/// a key around it to something else, or holds what no argument can. Paths are those of the params.
std::vector<config::Problem> unfillable(const Command& command, const Settings& base, const Settings& row);

/// Whether a row or factor sets a param that `command.params` names; a problem otherwise, since a misspelt
/// param would be a new one.
bool expect_param(const Settings& base, const Assignment& assignment, Problems& problems);

}  // namespace abl::sweeps
