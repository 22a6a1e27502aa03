// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/chains.h"
#include "sweeps/settings.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// A row as it is written, before its settings are resolved.
struct DraftRow {
  std::string id, label;
  std::vector<Assignment> set;
  std::map<std::string, std::string> paper;
  Place place;
  std::vector<DraftSource> sources{};
};

/// Reads `rows:`. Paper values must name one of `columns`.
std::vector<DraftRow> read_rows(YamlReader& reader, const Node& rows, const std::vector<Column>& columns);

/// Finds two rows of one id; ids made of levels can meet too.
void expect_unique_ids(const std::vector<DraftRow>& rows, const std::string& field, Problems& problems);

/// Resolves every row against the base: canonical documents, hashes, and `set` with the values of `settings`
/// (the setting columns) filled in where the row leaves them to the base. A problem in the base that all rows
/// have is told once. `command`: the rows set params of this command; otherwise they are trials of the
/// trainer.
std::vector<Row> resolve_rows(const std::vector<DraftRow>& drafts, const Settings& base,
                              const std::optional<Command>& command, const std::vector<std::string>& settings,
                              Problems& problems);

/// A level of a factor, and two rows that have it and differ in as many other factors as they can.
struct LevelInRows {
  std::string field;
  DraftRow first, last;
};

/// What is wrong with levels of themselves, for factors that cannot be combined: what both rows of a level
/// have.
void check_levels(const std::vector<LevelInRows>& levels, const Settings& base,
                  const std::optional<Command>& command, Problems& problems);

/// What is wrong with the keys that the base has, for a file whose rows are too wrong to be resolved.
void check_base(const Settings& base, Problems& problems);

}  // namespace abl::sweeps
