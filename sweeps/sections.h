// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/tasks.h"
#include "sweeps/rows.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

/// The sections of a sweep file. `root`: all of it. What is wrong becomes a problem of the reader.
namespace abl::sweeps {

/// A sweep file as it is written, before its rows are resolved.
struct WrittenSweep {
  SweepSpec spec;   ///< all but rows, data and what follows from them
  Settings shared;  ///< of all rows: base, or command
  std::optional<Scale> scale;
  std::vector<DraftRow> drafts;
};
/// `folder`: as of `parse_sweep`. `root` outlives it.
WrittenSweep read_written(YamlReader& reader, const Node& root, const std::string& folder);

/// `tune: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}, budget: 8, metric: val/loss, on: seeds 100-101}`.
std::optional<Tune> read_tune(YamlReader& reader, const Node& section, bool command);
/// `search: {over: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}}, trials: 8, metric: val/loss}`.
std::optional<Tune> read_search(YamlReader& reader, const Node& section, bool command);
/// Resolved rows of drafts.
using Resolve = std::function<std::vector<Row>(const std::vector<DraftRow>&)>;
/// Makes the candidates of `spec.tune`, once the rows are resolved without error; rows that are tuned are
/// marked.
void add_candidates(const std::vector<DraftRow>& drafts, const Node& section, const Settings& shared,
                    const Resolve& resolve, SweepSpec& spec, Problems& problems);

/// `retry: {max: 3, on: {…}}`.
void read_retry(YamlReader& reader, const Node& root, SweepSpec& spec);
/// `resources: {gpus: 1, where: {gpu: h100, host: ["!node7", "!node8"]}}`.
void read_resources(YamlReader& reader, const Node& root, SweepSpec& spec);
/// `limits: {time: 2h, stall: 10m, log: 64MiB, nan: fail}`.
Limits read_limits(YamlReader& reader, const Node& root);

/// `probes: [feature-norms, {name: attention, images: 8}]`.
std::vector<protocol::ProbeRequest> read_probe_list(YamlReader& reader, const Node& root);
/// The metric that `probe: feature-norms/last` of a column stands for.
std::string read_probe_source(YamlReader& reader, const Node& node, const std::string& field);
/// A column takes what a probe of the sweep finds, with the settings that the file has for it.
void resolve_probe_columns(SweepSpec& spec, const Node& table, Problems& problems);

/// Reads `table:` (null: there is none). A sweep of the trainer knows the metrics and counts that exist; a
/// command's metrics are its own, and nothing of it can be counted.
TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command,
                     const config::Task& task);
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
