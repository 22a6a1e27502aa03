// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sweeps/rows.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

/// The sections of a sweep file. `root`: all of it. What is wrong becomes a problem of the reader.
namespace abl::sweeps {

/// `retry: {max: 3, on: {…}}`.
void read_retry(YamlReader& reader, const Node& root, SweepSpec& spec);
/// `resources: {gpus: 1, where: {gpu: h100, host: ["!node7", "!node8"]}}`.
void read_resources(YamlReader& reader, const Node& root, SweepSpec& spec);
/// `limits: {time: 2h, stall: 10m, log: 64MiB, nan: fail}`.
Limits read_limits(YamlReader& reader, const Node& root);

/// Reads `table:` (null: there is none). A sweep of the trainer knows the metrics and counts that exist; a
/// command's metrics are its own, and nothing of it can be counted.
TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command);
/// The dotted keys that the table shows as columns.
std::vector<std::string> setting_columns(const TableSpec& table);
/// Gives each row the one that it is compared with: its group's, or the table's; of rows with factors the one
/// of its own levels, where the file names the row without them.
void set_baselines(const TableSpec& table, const std::vector<DraftRow>& drafts, const Node* section,
                   std::vector<Row>& rows, Problems& problems);
/// Whether the setting columns are settings of some row.
void check_table(const TableSpec& table, const std::vector<Row>& rows, const Node& section,
                 Problems& problems);

}  // namespace abl::sweeps
