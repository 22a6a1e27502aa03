// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// Reads `table:` (null: there is none). A sweep of the trainer knows the metrics and counts that exist; a
/// command's metrics are its own, and nothing of it can be counted.
TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command);

/// The dotted keys that the table shows as columns.
std::vector<std::string> setting_columns(const TableSpec& table);

/// Whether the baseline is a row, and the setting columns are settings of some row.
void check_table(const TableSpec& table, const std::vector<Row>& rows, const Node& section,
                 Problems& problems);

}  // namespace abl::sweeps
