// SPDX-License-Identifier: Apache-2.0
#include "sweeps/sweep_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "base/nearest_name.h"
#include "config/document/trial_document.h"
#include "config/field_table.h"
#include "config/model/model_section.h"
#include "config/recipe/most_ranks.h"
#include "protocol/metrics.h"
#include "sweeps/attributes.h"
#include "sweeps/canonical.h"
#include "sweeps/command.h"
#include "sweeps/factors.h"
#include "sweeps/rows.h"
#include "sweeps/yaml_reader.h"

namespace abl::sweeps {
namespace {

constexpr std::int64_t kMostTrials = 100'000;
constexpr int kFormatVersion = 1;
constexpr int kMostGpus = 64;  // of one machine

std::vector<std::int64_t> read_seeds(YamlReader& reader, const Node& node) {
  std::vector<std::int64_t> seeds;
  if (node.kind != Node::Kind::kSequence) {
    const std::int64_t count = reader.whole_number(node, "seeds", 1, kMostTrials).value_or(0);
    for (std::int64_t seed = 0; seed < count; ++seed) seeds.push_back(seed);
    return seeds;
  }
  if (node.items.empty())
    reader.problems().add(node.place, "seeds", "no seeds; expected a list of them, or how many");
  std::set<std::int64_t> seen;
  for (const Node& item : node.items) {
    const auto seed =
        reader.whole_number(item, "seeds", 0, static_cast<std::int64_t>(config::kSeedRange.high));
    if (!seed) continue;
    if (!seen.insert(*seed).second)
      reader.problems().add(item.place, "seeds", fmt::format("seed {} is listed twice", *seed));
    seeds.push_back(*seed);
  }
  return seeds;
}

/// `section: {key: n}`, as resources and retry are.
int read_one_number(YamlReader& reader, const Node& root, const char* section, const char* key,
                    std::int64_t high) {
  const Node* node = root.find(section);
  if (!node || !reader.is_mapping(*node, section)) return 0;
  reader.allow_only(*node, section, {key});
  const Node* number = node->find(key);
  return number ? static_cast<int>(reader.whole_number(*number, dotted(section, key), 0, high).value_or(0))
                : 0;
}

/// "90s", "10m", "2h", "3d" in seconds; nothing for anything else.
std::optional<std::chrono::seconds> duration(const std::string& text) {
  constexpr std::int64_t kMost = 366 * 86'400;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() - 1 || number <= 0) return std::nullopt;
  const std::int64_t unit = text.back() == 's'   ? 1
                            : text.back() == 'm' ? 60
                            : text.back() == 'h' ? 3600
                            : text.back() == 'd' ? 86'400
                                                 : 0;
  if (unit == 0 || number > kMost / unit) return std::nullopt;
  return std::chrono::seconds{number * unit};
}

/// `limits: {time: 2h, stall: 10m}`.
Limits read_limits(YamlReader& reader, const Node& root) {
  Limits limits;
  const Node* node = root.find("limits");
  if (!node || !reader.is_mapping(*node, "limits")) return limits;
  reader.allow_only(*node, "limits", {"time", "stall"});
  for (const auto& [key, limit] : {std::pair{"time", &limits.time}, std::pair{"stall", &limits.stall}}) {
    const Node* value = node->find(key);
    if (!value) continue;
    const auto text = reader.text(*value, dotted("limits", key));
    if (!text) continue;
    if (const auto read = duration(*text))
      *limit = *read;
    else
      reader.problems().add(
          value->place, dotted("limits", key),
          fmt::format("invalid duration '{}'; expected a whole number and s, m, h or d, such as "
                      "90s, 10m or 2h",
                      *text));
  }
  return limits;
}

void check_header(YamlReader& reader, const Node& root, SweepSpec& spec) {
  reader.allow_only(root, "",
                    {"ablate", "name", "base", "command", "rows", "factors", "zip", "only_if", "exclude",
                     "seeds", "table", "resources", "retry", "limits"});
  Problems& problems = reader.problems();
  if (const Node* version = root.find("ablate"); !version) {
    problems.add(root.place, "ablate",
                 fmt::format("missing; expected {}, the version of the file format", kFormatVersion));
  } else if (version->json() != kFormatVersion) {
    problems.add(
        version->place, "ablate",
        fmt::format("unsupported file format version '{}'; expected {}", version->text, kFormatVersion));
  }
  if (const Node* name = root.find("name")) {
    spec.name = reader.name(*name, "name").value_or("");
  } else {
    problems.add(root.place, "name", "missing; expected a name for the sweep");
  }
}

/// What all rows share, from `base` or `command`.
Settings read_shared(YamlReader& reader, const Node& root, const std::string& folder, SweepSpec& spec) {
  const Node* base = root.find("base");
  const Node* command = root.find("command");
  if (base && command) {
    reader.problems().add(root.entry("command")->place, "command",
                          "base is given too; expected one of base and command");
  }
  if (command) {
    CommandSection section = read_command(reader, *command, folder);
    spec.command = std::move(section.command);
    spec.data = std::move(section.data);
    return std::move(section.base);
  }
  if (!base) {
    reader.problems().add(root.place, "base",
                          "missing; expected base with model, data and recipe, or command");
    return {};
  }
  if (!reader.is_mapping(*base, "base")) return {};
  if (const Node::Entry* seed = base->entry("seed")) {
    reader.problems().add(seed->place, "base.seed", "use the seeds: key beside base");
  }
  return Settings{*base, "base"};
}

std::int64_t trials_of(const std::vector<DraftRow>& drafts, const SweepSpec& spec) {
  return static_cast<std::int64_t>(drafts.size() * spec.seeds.size());
}

/// The rows that factors make. Where they make none, or more than are looked at, their levels are looked at
/// alone: what is wrong with those must not wait until the factors fit together.
std::vector<DraftRow> read_combinations(YamlReader& reader, const Node& root, const Settings& shared,
                                        const SweepSpec& spec) {
  const std::size_t before = reader.problems().size();
  const FactorPlan plan = read_factors(reader, root);
  std::vector<DraftRow> drafts;
  if (reader.problems().size() == before) drafts = combine(plan, reader.problems());
  const bool resolved = !drafts.empty() && trials_of(drafts, spec) <= kMostTrials;
  if (!resolved && (root.find("base") || root.find("command")))
    check_levels(levels_in_rows(plan), shared, spec.command, reader.problems());
  return drafts;
}

std::vector<DraftRow> read_drafts(YamlReader& reader, const Node& root, const Settings& shared,
                                  const SweepSpec& spec) {
  const Node* rows = root.find("rows");
  const Node* factors = root.find("factors");
  if (rows && factors) {
    reader.problems().add(root.entry("factors")->place, "factors",
                          "rows are given too; expected one of rows and factors");
  }
  if (!rows && !factors) {
    reader.problems().add(root.place, "rows", "missing; expected rows, or factors");
    return {};
  }
  for (const char* key : {"zip", "only_if", "exclude"}) {
    if (!factors && root.find(key)) reader.problems().add(root.entry(key)->place, key, "requires factors");
  }
  std::vector<DraftRow> drafts =
      rows ? read_rows(reader, *rows, spec.table.columns) : read_combinations(reader, root, shared, spec);
  expect_unique_ids(drafts, rows ? "rows" : "factors", reader.problems());
  const Place place = root.entry(rows ? "rows" : "factors")->place;
  const std::int64_t trials = trials_of(drafts, spec);
  if (trials > kMostTrials) {
    reader.problems().add(place, rows ? "rows" : "factors",
                          fmt::format("{} rows with {} seeds are {} trials; a sweep has at most {}",
                                      drafts.size(), spec.seeds.size(), trials, kMostTrials));
    drafts.clear();
  }
  return drafts;
}

/// Each GPU needs an image of each part of a batch.
void check_gpus(const SweepSpec& spec, const Node& resources, Problems& problems) {
  if (spec.gpus < 2) return;
  for (const Row& row : spec.rows) {
    if (row.batch == 0 || row.config.empty()) continue;  // a command's, or wrong
    const auto trial = config::read_trial_or_throw(nlohmann::json::parse(row.config));
    const auto most = config::most_ranks(config::known_batch(trial), trial.recipe.accumulate);
    if (spec.gpus <= most) continue;
    problems.add(resources.place, "resources.gpus",
                 fmt::format("row {}: {} GPUs cannot share {} images at a time; expected at most {}", row.id,
                             spec.gpus, row.batch, most));
    return;
  }
}

/// The one data set of all rows.
std::string data_of(const std::vector<Row>& rows, Problems& problems) {
  std::string data;
  for (const Row& row : rows) {
    if (row.config.empty()) continue;
    const std::string name = nlohmann::json::parse(row.config)["data"]["name"];
    if (data.empty()) data = name;
    if (name != data) {
      problems.add(row.place, dotted("rows", row.id),
                   fmt::format("trains on {}, the rows before on {}; a table has one data set", name, data));
      break;
    }
  }
  return data;
}

using protocol::Better;
using protocol::Take;

/// Fills in what follows from the name of a metric or count.
void describe(Column& column, std::span<const protocol::Quantity> known) {
  const protocol::Quantity* quantity = find(known, column.source);
  if (!quantity) return;
  column.unit = quantity->unit;
  column.better = protocol::better_by_name(column.source);
}

/// Said where it is read, and no want of a direction.
bool has_unknown_direction(const Node& column) {
  const Node* better = column.find("better");
  return better && !value_named<Better>(better->text);
}

class ColumnReader {
 public:
  ColumnReader(YamlReader& reader, bool command) : reader_{reader}, command_{command} {}

  Column read(const Node& node, std::string field) {
    Column column;
    if (!reader_.is_mapping(node, field)) return column;
    reader_.allow_only(node, field, keys_with({"name", "metric", "count", "setting"}, column_attributes()));
    if (const Node* name = node.find("name")) {
      column.name = reader_.text(*name, field + ".name").value_or("");
      if (!column.name.empty()) field = "table.columns." + column.name;
    } else {
      problem(node.place, field + ".name", "missing; expected a text");
    }
    column.heading = column.name;
    read_source(node, field, column);  // what the attributes are where the file says nothing
    read_attributes(reader_, node, field, column_attributes(), column);
    column.unit_fits = column.kind == Column::Kind::kCount && column.unit && !node.find("unit");
    check_take(node, field, column);
    return column;
  }

 private:
  void problem(Place place, const std::string& field, const std::string& message,
               const std::string& nearest = {}) {
    reader_.problems().add(place, field, message, nearest);
  }

  void read_source(const Node& node, const std::string& field, Column& column) {
    const Node* metric = node.find("metric");
    const Node* count = node.find("count");
    const Node* setting = node.find("setting");
    if ((metric != nullptr) + (count != nullptr) + (setting != nullptr) != 1) {
      problem(node.place, field, "expected one of metric, count and setting");
    } else if (metric) {
      column.source = reader_.text(*metric, field + ".metric").value_or("");
      describe(column, protocol::trainer_metrics());
      const std::vector<std::string> known = names(protocol::trainer_metrics());
      if (!command_ && !column.source.empty() && !find(protocol::trainer_metrics(), column.source)) {
        problem(metric->place, field + ".metric",
                fmt::format("no trial emits '{}'; expected {}", column.source, any_of(known)),
                nearest_name(column.source, known));
      }
    } else if (count) {
      column.kind = Column::Kind::kCount;
      column.source = reader_.choice(*count, field + ".count", names(protocol::count_modes())).value_or("");
      describe(column, protocol::count_modes());
      if (command_)
        problem(count->place, field + ".count",
                "the model of a command is not known, so nothing of it can be counted");
    } else {
      column.kind = Column::Kind::kSetting;
      column.source = reader_.text(*setting, field + ".setting").value_or("");
    }
  }

  void check_take(const Node& node, const std::string& field, const Column& column) {
    const Node* take = node.find("take");
    if (!take) return;
    if (column.kind != Column::Kind::kMetric) {
      problem(take->place, field + ".take", "only a metric has several values to take one from");
    } else if (column.take == Take::kBest && column.better == Better::kNone && !has_unknown_direction(node)) {
      problem(take->place, field + ".take",
              "the best needs a direction; add better: higher or better: lower");
    }
  }

  YamlReader& reader_;
  bool command_;
};

void read_columns(YamlReader& reader, const Node& columns, bool command, TableSpec& table) {
  if (!reader.is_sequence(columns, "table.columns")) return;
  if (columns.items.empty())
    reader.problems().add(columns.place, "table.columns", "no columns; expected at least one");
  for (std::size_t i = 0; i < columns.items.size(); ++i) {
    Column column =
        ColumnReader{reader, command}.read(columns.items[i], fmt::format("table.columns.{}", i + 1));
    if (!column.name.empty() &&
        std::ranges::find(table.columns, column.name, &Column::name) != table.columns.end()) {
      reader.problems().add(columns.items[i].place, "table.columns",
                            fmt::format("two columns are named '{}'", column.name));
    }
    table.columns.push_back(std::move(column));
  }
}

/// Reads `table:` (null: there is none). A sweep of the trainer knows the metrics and counts that exist; a
/// command's metrics are its own, and nothing of it can be counted.
TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command) {
  TableSpec spec;
  const Node* columns = nullptr;
  if (table && reader.is_mapping(*table, "table")) {
    reader.allow_only(*table, "table", keys_with({}, table_attributes(), {"columns"}));
    read_attributes(reader, *table, "table", table_attributes(), spec);
    columns = table->find("columns");
  }
  if (columns) {
    read_columns(reader, *columns, command, spec);
  } else if (command) {
    reader.problems().add(
        table ? table->place : around, "table.columns",
        "missing; expected the metrics that the command emits, such as [{name: acc, metric: accuracy}]");
  } else {
    using protocol::metric::kValTop1;
    spec.columns.push_back({.name = "top1", .heading = kValTop1, .source = kValTop1});
    describe(spec.columns.back(), protocol::trainer_metrics());
  }
  return spec;
}

/// The dotted keys that the table shows as columns.
std::vector<std::string> setting_columns(const TableSpec& table) {
  std::vector<std::string> keys;
  for (const Column& column : table.columns) {
    if (column.kind == Column::Kind::kSetting && !column.source.empty()) keys.push_back(column.source);
  }
  return keys;
}

/// Whether the baseline is a row, and the setting columns are settings of some row.
void check_table(const TableSpec& table, const std::vector<Row>& rows, const Node& section,
                 Problems& problems) {
  const Node* baseline = section.find("baseline");
  std::vector<std::string> ids;
  for (const Row& row : rows) ids.push_back(row.id);
  if (baseline && !rows.empty() && !table.baseline.empty() &&
      std::ranges::find(ids, table.baseline) == ids.end()) {
    problems.add(baseline->place, "table.baseline", fmt::format("unknown row '{}'", table.baseline),
                 nearest_name(table.baseline, ids));
  }
  const Node* columns = section.find("columns");
  for (std::size_t i = 0; columns && i < columns->items.size() && i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool resolved = std::ranges::any_of(rows, [](const Row& row) { return !row.config.empty(); });
    const Node* setting = columns->items[i].find("setting");
    if (!setting || !resolved || column.source.empty()) continue;
    if (std::ranges::none_of(rows, [&](const Row& row) { return row.set.contains(column.source); })) {
      problems.add(
          setting->place, fmt::format("table.columns.{}.setting", column.name),
          fmt::format("no row has the setting '{}'; expected a dotted key such as model.attention.share",
                      column.source));
    }
  }
}

}  // namespace

Problem too_large(const std::string& file, std::size_t bytes) {
  return {.file = file,
          .place = {},
          .field = {},
          .message = fmt::format("the file has {} bytes; a sweep file has at most {} ({} MiB)",
                                 with_thousands(bytes), with_thousands(kLargestFile), kLargestFile >> 20),
          .nearest = {}};
}

SweepSpec parse_sweep(const std::string& text, const std::string& file, const std::string& folder) {
  if (text.size() > kLargestFile) throw SweepFileError{{too_large(file, text.size())}};
  Problems problems{file};
  const Node root = load_yaml(text, file, problems);
  YamlReader reader{problems};
  if (root.kind == Node::Kind::kNull) {
    problems.add(root.place, "", "the file is empty; expected a sweep: ablate, name, base, rows or factors");
    problems.throw_if_any();
  }
  SweepSpec spec{.file = file, .text = text};
  if (!reader.is_mapping(root, "")) problems.throw_if_any();

  check_header(reader, root, spec);
  const Settings shared = read_shared(reader, root, folder, spec);
  const Node* table = root.find("table");
  spec.table = read_table(reader, table, root.place, spec.command.has_value());
  const Node* seeds = root.find("seeds");
  spec.seeds = seeds ? read_seeds(reader, *seeds) : std::vector<std::int64_t>{0};
  spec.gpus = read_one_number(reader, root, "resources", "gpus", kMostGpus);
  spec.max_retries = read_one_number(reader, root, "retry", "max", 1000);
  spec.limits = read_limits(reader, root);
  const std::vector<DraftRow> drafts = read_drafts(reader, root, shared, spec);
  if (root.find("base") || root.find("command")) {
    spec.rows = resolve_rows(drafts, shared, spec.command, setting_columns(spec.table), problems);
    if (!spec.command) spec.data = data_of(spec.rows, problems);
    if (!spec.command && drafts.empty()) check_base(shared, problems);
  }
  if (const Node* resources = root.find("resources")) check_gpus(spec, *resources, problems);
  if (table) check_table(spec.table, spec.rows, *table, problems);
  problems.throw_if_any();
  spec.canonical = canonical_spec(spec);
  spec.doubts = problems.doubts();
  return spec;
}

}  // namespace abl::sweeps
