// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweeps/chains.h"
#include "sweeps/scale.h"
#include "sweeps/settings.h"
#include "sweeps/sweep_spec.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {

/// A value as the paper prints it.
struct PaperValue {
  std::string text;
  std::optional<protocol::PaperMark> mark;
};

/// A row as it is written, before its settings are resolved.
struct DraftRow {
  std::string id, label;
  std::vector<Assignment> set;
  std::map<std::string, PaperValue> paper{};  ///< by column
  Place place;
  std::vector<DraftSource> sources{};
  std::vector<Assignment> tuned{};  ///< of a point of its tuning: set at last, after a scale too
  std::string group{};
  std::optional<protocol::NotTrained> not_trained{};
  std::string not_trained_why{};
  bool has_set = true;              ///< false: the file sets nothing, not even {}
  std::string levels{};             ///< of a combination of factors: "cifar10", or "2,block" of several
  std::string written{}, suffix{};  ///< of a row with factors: its id in the file, what makes `id` of it
  struct OfLevel {
    PaperValue value;
    Place place;
  };
  std::map<std::string, std::map<std::string, OfLevel>> paper_of_levels{};  ///< column -> levels -> value
};

/// Reads `rows:`. Paper values must name one of `columns`. `factors`: the file has factors too, so that they
/// may be given by level.
std::vector<DraftRow> read_rows(YamlReader& reader, const Node& rows, const std::vector<Column>& columns,
                                bool factors);

/// Each row with each combination of the factors, as many rows and combinations as there are.
std::vector<DraftRow> multiply(const std::vector<DraftRow>& rows, const std::vector<DraftRow>& combinations,
                               Problems& problems);

/// Rows of one group have to stand together.
void expect_groups_together(const std::vector<DraftRow>& rows, Problems& problems);

/// Finds two rows of one id; ids made of levels can meet too.
void expect_unique_ids(const std::vector<DraftRow>& rows, const std::string& field, Problems& problems);

class OtherSweeps;

/// Where rows of other sweeps come from, for rows of the file `in`.
struct Elsewhere {
  OtherSweeps& sweeps;
  std::string in;
};
/// The group of such rows.
inline constexpr const char* kOfOtherSweeps = "rows of other sweeps, for their weights";

/// Resolves every row against the base: canonical documents, hashes, and `set` with the values of `settings`
/// (the setting columns) filled in where the row leaves them to the base. A problem in the base that all rows
/// have is told once. `command`: the rows set params of this command; otherwise they are trials of the
/// trainer. `scale`, where there is one, changes what they run; `made_equal` then gets the rows that it makes
/// the same. In a row's `sources`, one of `elsewhere` counts behind all of these.
std::vector<Row> resolve_rows(const std::vector<DraftRow>& drafts, const Settings& base,
                              const std::optional<Command>& command, const std::vector<std::string>& settings,
                              Scale* scale, const Elsewhere& elsewhere,
                              std::vector<std::vector<std::string>>& made_equal, Problems& problems);

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

/// Reads `seeds: {min: 2, max: 8, until: "ci(acc) < 0.3"}`. What is wrong becomes a problem.
std::optional<SeedRule> read_seed_rule(YamlReader& reader, const Node& node);
/// What of it does not fit the rows and the table, once these are known.
void check_seed_rule(const SeedRule& rule, const Node& node, const SweepSpec& spec, Problems& problems);

}  // namespace abl::sweeps
