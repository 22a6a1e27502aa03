// SPDX-License-Identifier: Apache-2.0
#include "sweeps/sweep_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/nearest_name.h"
#include "base/pattern.h"
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

constexpr int kMostAttempts = 1000;
constexpr std::size_t kMostRules = 100;  // patterns among them are searched for after each failure
using protocol::FailureClass, protocol::FailureKind;

/// What a misspelt kind of failure may have meant.
std::string nearest_kind(const std::string& written) {
  std::vector<std::string> known = names_of<FailureClass>();
  for (int signal = 1; signal < 32; ++signal)
    known.push_back(FailureKind{.by = FailureKind::By::kSignal, .number = signal}.text());
  return nearest_name(written, known, 0.3);
}

/// "resources", "exit 75", "signal SEGV" or "log PATTERN".
std::optional<FailureKind> read_kind(YamlReader& reader, const Node::Entry& entry, const std::string& field) {
  const auto problem = [&](const std::string& message, const std::string& nearest = {}) {
    reader.problems().add(entry.place, field, message, nearest);
    return std::nullopt;
  };
  const auto kind = FailureKind::read(entry.key);
  if (!kind)
    return problem(fmt::format("unknown kind of failure '{}'; expected {}, 'exit N' with N from 1 to 255, "
                               "'signal NAME' or 'log PATTERN'",
                               entry.key, fmt::join(names_of<FailureClass>(), ", ")),
                   nearest_kind(entry.key));
  if (kind->by == FailureKind::By::kLog && kind->pattern.empty())
    return problem("no pattern; expected 'log ' and a regular expression");
  if (kind->by == FailureKind::By::kLog)
    if (const std::string why = Pattern{kind->pattern}.problem(); !why.empty())
      return problem(fmt::format("invalid pattern: {}; expected a regular expression of RE2", why));
  if (kind->by == FailureKind::By::kClass && kind->of == FailureClass::kInfrastructure)
    return problem("a failure of the infrastructure fails no trial and has no limit; expected another kind");
  return kind;
}

/// `on: {resources: 1, "exit 75": infrastructure}`.
void read_retry_rules(YamlReader& reader, const Node& on, protocol::RetryRules& rules) {
  const std::string field = "retry.on";
  if (!reader.is_mapping(on, field)) return;
  if (on.entries.size() > kMostRules)
    return reader.problems().add(
        on.place, field,
        fmt::format("{} kinds of failures; expected at most {}", on.entries.size(), kMostRules));
  for (const Node::Entry& entry : on.entries) {
    const std::string its_field = dotted(field, entry.key);
    const auto kind = read_kind(reader, entry, its_field);
    protocol::RetryRule rule{.kind = kind.value_or(FailureKind{})};
    if (const auto of = value_named<FailureClass>(entry.value.text)) {
      rule.counts_as = of;
      if (kind && kind->by == FailureKind::By::kClass &&
          (kind->of == *of || kind->of == FailureClass::kTrial))
        reader.problems().add(entry.value.place, its_field,
                              fmt::format("'{}' cannot count as {}; expected a number of further attempts",
                                          entry.key, entry.value.text));
    } else if (const auto json = entry.value.json();
               json.is_number_integer() && json >= 0 && json <= kMostAttempts) {
      rule.attempts = json.get<int>();
    } else {
      reader.problems().add(
          entry.value.place, its_field,
          fmt::format("invalid value '{}'; expected a number of further attempts from 0 to {}, or as which "
                      "class it counts: {}",
                      entry.value.text, kMostAttempts, any_of(names_of<FailureClass>())),
          nearest_name(entry.value.text, names_of<FailureClass>()));
    }
    if (!kind) continue;
    if (std::ranges::find(rules, *kind, &protocol::RetryRule::kind) != rules.end())
      reader.problems().add(entry.place, its_field, fmt::format("'{}' is listed twice", kind->text()));
    rules.push_back(std::move(rule));
  }
}

/// `retry: {max: 3, on: {…}}`.
void read_retry(YamlReader& reader, const Node& root, SweepSpec& spec) {
  const Node* node = root.find("retry");
  if (!node || !reader.is_mapping(*node, "retry")) return;
  reader.allow_only(*node, "retry", {"max", "on"});
  if (const Node* max = node->find("max"))
    spec.max_retries = static_cast<int>(reader.whole_number(*max, "retry.max", 0, kMostAttempts).value_or(0));
  if (const Node* on = node->find("on")) read_retry_rules(reader, *on, spec.retry_on);
}

/// `resources: {gpus: 1, where: {gpu: h100, host: ["!node7", "!node8"]}}`.
void read_resources(YamlReader& reader, const Node& root, SweepSpec& spec) {
  const Node* node = root.find("resources");
  if (!node || !reader.is_mapping(*node, "resources")) return;
  reader.allow_only(*node, "resources", {"gpus", "pack", "where"});
  if (const Node* gpus = node->find("gpus"))
    spec.gpus = static_cast<int>(reader.whole_number(*gpus, "resources.gpus", 0, kMostGpus).value_or(0));
  if (const Node* pack = node->find("pack")) {
    spec.pack = reader.boolean(*pack, "resources.pack").value_or(false);
    if (spec.pack && spec.gpus > 1)
      reader.problems().add(
          pack->place, "resources.pack",
          fmt::format("trials of {} GPUs have them for themselves; expected gpus: 1", spec.gpus));
  }
  const Node* where = node->find("where");
  if (!where || !reader.is_mapping(*where, "resources.where")) return;
  for (const auto& [label, place, value] : where->entries) {
    const std::string field = "resources.where." + label;
    const std::vector<Node> one{value};
    const std::vector<Node>& values = value.kind == Node::Kind::kSequence ? value.items : one;
    if (values.empty()) reader.problems().add(place, field, "an empty list; expected a value of the label");
    for (const Node& item : values) {
      if (item.kind != Node::Kind::kScalar || item.text.empty() || item.text == "!")
        reader.problems().add(
            item.place, field,
            "expected a value of the label, such as h100, or \"!node7\" (in quotes) for any other");
      else
        spec.where[label].push_back(item.text);
    }
  }
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

/// "64MiB" in bytes; nothing for anything else.
std::optional<std::uint64_t> byte_size(const std::string& text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50, kLeast = 1 << 10;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  const int shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
  if ((shift == 0 && !unit.empty()) || number > kMost >> shift || number << shift < kLeast)
    return std::nullopt;
  return number << shift;
}

/// `limits: {time: 2h, stall: 10m, log: 64MiB, nan: fail}`.
Limits read_limits(YamlReader& reader, const Node& root) {
  Limits limits;
  const Node* node = root.find("limits");
  if (!node || !reader.is_mapping(*node, "limits")) return limits;
  reader.allow_only(*node, "limits", {"time", "stall", "log", "nan"});
  if (const Node* value = node->find("log"))
    if (const auto text = reader.text(*value, "limits.log")) {
      if (const auto size = byte_size(*text))
        limits.log = *size;
      else
        reader.problems().add(
            value->place, "limits.log",
            fmt::format("invalid size '{}'; expected a whole number and KiB, MiB or GiB, such as 64MiB, from "
                        "1KiB",
                        *text));
    }
  if (const Node* value = node->find("nan"))
    limits.nan_fails = reader.choice(*value, "limits.nan", {"fail", "keep"}) == "fail";
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
                     "seeds", "table", "resources", "retry", "limits", "scale"});
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

/// Whether no row is trained, and nothing is known of any row's model: only the paper's values are there.
bool is_printed_alone(const Node& root) {
  const Node* rows = root.find("rows");
  return rows && !rows->items.empty() && std::ranges::all_of(rows->items, [](const Node& row) {
           return row.find("not_trained") && !row.find("set");
         });
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
  if (!base && is_printed_alone(root)) return {};
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
  const auto trained = std::ranges::count_if(drafts, [](const DraftRow& row) { return !row.not_trained; });
  return trained * static_cast<std::int64_t>(spec.seeds.size());
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

/// Each row with each combination of the factors; without them where they are wrong, or too many.
std::vector<DraftRow> read_product(YamlReader& reader, const Node& root, std::vector<DraftRow> rows) {
  const std::size_t before = reader.problems().size();
  expect_unique_ids(rows, "rows", reader.problems());
  const FactorPlan plan = read_factors(reader, root);
  if (reader.problems().size() != before) return rows;
  const std::vector<DraftRow> combinations = combine(plan, reader.problems());
  const auto product = static_cast<std::int64_t>(rows.size() * combinations.size());
  if (product > kMostTrials) {
    reader.problems().add(root.entry("factors")->place, "factors",
                          fmt::format("{} rows with {} combinations of levels; a sweep has at most {} trials",
                                      rows.size(), combinations.size(), kMostTrials));
    return rows;
  }
  return combinations.empty() ? rows : multiply(rows, combinations, reader.problems());
}

std::vector<DraftRow> read_drafts(YamlReader& reader, const Node& root, const Settings& shared,
                                  const SweepSpec& spec) {
  const Node* rows = root.find("rows");
  const Node* factors = root.find("factors");
  if (!rows && !factors) {
    reader.problems().add(root.place, "rows", "missing; expected rows, or factors");
    return {};
  }
  for (const char* key : {"zip", "only_if", "exclude"}) {
    if (!factors && root.find(key)) reader.problems().add(root.entry(key)->place, key, "requires factors");
  }
  std::vector<DraftRow> drafts = rows ? read_rows(reader, *rows, spec.table.columns, factors)
                                      : read_combinations(reader, root, shared, spec);
  if (rows && factors) drafts = read_product(reader, root, std::move(drafts));
  expect_groups_together(drafts, reader.problems());
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
    if (row.batch == 0 || row.config.empty() || row.not_trained) continue;  // a command's, or wrong
    const auto trial = config::read_trial_or_throw(nlohmann::json::parse(row.config));
    const auto most = config::most_ranks(config::known_batch(trial), trial.recipe.accumulate);
    if (spec.gpus <= most) continue;
    problems.add(resources.place, "resources.gpus",
                 fmt::format("row {}: {} GPUs cannot share {} images at a time; expected at most {}", row.id,
                             spec.gpus, row.batch, most));
    return;
  }
}

/// A source's own seed is one of the sweep.
void check_seeds_of_sources(const std::vector<DraftRow>& drafts, const std::vector<std::int64_t>& seeds,
                            Problems& problems) {
  for (const DraftRow& draft : drafts)
    for (const DraftSource& source : draft.sources)
      if (source.seed && std::ranges::find(seeds, *source.seed) == seeds.end())
        problems.add(source.seed_place, source.field + ".seed",
                     fmt::format("row {} has no seed {}; expected one of seeds", source.row, *source.seed));
}

/// The one data set of all rows, but for those from which others start; none where a factor varies it.
std::string data_of(const std::vector<Row>& rows, bool varies, Problems& problems) {
  std::set<int> begun_from;
  for (const Row& row : rows)
    for (const RowSource& source : row.sources) begun_from.insert(source.row);
  std::string data;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.config.empty() || row.not_trained || begun_from.contains(static_cast<int>(i))) continue;
    if (data.empty()) data = row.data;
    if (row.data != data && varies) return {};
    if (row.data != data) {
      problems.add(
          row.place, dotted("rows", row.id),
          fmt::format("trains on {}, the rows before on {}; a table has one data set", row.data, data));
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
    reader_.allow_only(
        node, field,
        keys_with({"name", "metric", "count", "setting", "expression", "printed"}, column_attributes()));
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
    if (column.cut && !column.digits)
      problem(node.find("cut")->place, field + ".cut", "requires digits: how many are kept");
    if (const Node* see = node.find("see"); see && column.kind != Column::Kind::kMetric)
      problem(see->place, field + ".see",
              "only the metric of a column has seeds that could show a difference");
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
    const Node* expression = node.find("expression");
    const Node* printed = node.find("printed");
    if ((metric != nullptr) + (count != nullptr) + (setting != nullptr) + (expression != nullptr) +
            (printed != nullptr) !=
        1) {
      problem(node.place, field, "expected one of metric, count, setting, expression and printed");
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
    } else if (expression) {
      column.kind = Column::Kind::kExpression;
      column.source = reader_.text(*expression, field + ".expression").value_or("");
    } else if (printed) {
      column.kind = Column::Kind::kPrinted;
      column.source = "true";
      if (!reader_.boolean(*printed, field + ".printed").value_or(true))
        problem(printed->place, field + ".printed", "expected true, or another source of the column");
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
  check_expressions(reader, columns, table);
}

/// Reads `table:` (null: there is none). A sweep of the trainer knows the metrics and counts that exist; a
/// command's metrics are its own, and nothing of it can be counted.
TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command) {
  TableSpec spec;
  const Node* columns = nullptr;
  if (table && reader.is_mapping(*table, "table")) {
    reader.allow_only(*table, "table", keys_with({}, table_attributes(), {"columns", "pivot", "show"}));
    Node others = *table;
    if (const Node* baseline = table->find("baseline"); baseline && baseline->kind == Node::Kind::kMapping) {
      for (const Node::Entry& group : baseline->entries)
        if (const auto row = reader.text(group.value, "table.baseline." + group.key))
          spec.baselines[group.key] = *row;
      std::erase_if(others.entries, [](const Node::Entry& entry) { return entry.key == "baseline"; });
    }
    read_attributes(reader, others, "table", table_attributes(), spec);
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
  if (const Node* pivot = table ? table->find("pivot") : nullptr) read_pivot(reader, *pivot, spec);
  if (const Node* show = table ? table->find("show") : nullptr) read_show(reader, *show, spec);
  return spec;
}

/// The dotted keys that the table shows as columns.
std::vector<std::string> setting_columns(const TableSpec& table) {
  std::vector<std::string> keys;
  for (const Column& column : table.columns) {
    if (column.kind == Column::Kind::kSetting && !column.source.empty()) keys.push_back(column.source);
  }
  if (table.pivot) keys.push_back(table.pivot->by);
  return keys;
}

/// Gives each row the one that it is compared with: its group's, or the table's; of rows with factors the one
/// of its own levels, where the file names the row without them.
void set_baselines(const TableSpec& table, const std::vector<DraftRow>& drafts, const Node* section,
                   std::vector<Row>& rows, Problems& problems) {
  const Node* baseline = section ? section->find("baseline") : nullptr;
  if (!baseline || rows.empty()) return;
  std::set<std::string> ids, groups;
  std::vector<std::string> names;
  for (const DraftRow& row : drafts) {
    ids.insert(row.id);
    groups.insert(row.group);
    names.push_back(row.id);
    if (!row.written.empty()) names.push_back(row.written);
  }
  const auto expect_row = [&](const std::string& name, Place place, const std::string& field) {
    if (!name.empty() && std::ranges::find(names, name) == names.end())
      problems.add(place, field, fmt::format("unknown row '{}'", name), nearest_name(name, names));
  };
  expect_row(table.baseline, baseline->place, "table.baseline");
  for (const Node::Entry& entry : baseline->entries) {
    if (const auto given = table.baselines.find(entry.key); given != table.baselines.end())
      expect_row(given->second, entry.value.place, "table.baseline." + entry.key);
    if (!groups.contains(entry.key))
      problems.add(entry.place, "table.baseline", fmt::format("no row has the group '{}'", entry.key),
                   nearest_name(entry.key, {groups.begin(), groups.end()}));
  }
  for (std::size_t i = 0; i < rows.size() && i < drafts.size(); ++i) {
    const auto of_group = table.baselines.find(drafts[i].group);
    const std::string& name = of_group == table.baselines.end() ? table.baseline : of_group->second;
    if (ids.contains(name))
      rows[i].baseline = name;
    else if (!name.empty() && ids.contains(name + drafts[i].suffix))
      rows[i].baseline = name + drafts[i].suffix;
  }
}

/// Whether the setting columns are settings of some row.
void check_table(const TableSpec& table, const std::vector<Row>& rows, const Node& section,
                 Problems& problems) {
  const Node* columns = section.find("columns");
  for (std::size_t i = 0; columns && i < columns->items.size() && i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const bool resolved = std::ranges::any_of(rows, [](const Row& row) { return !row.config.empty(); });
    const Node* setting = columns->items[i].find("setting");
    if (!setting || !resolved || column.source.empty()) continue;
    if (std::ranges::none_of(rows, [&](const Row& row) {
          return row.set.contains(column.source) || row.not_trained == protocol::NotTrained::kScale;
        })) {
      problems.add(
          setting->place, fmt::format("table.columns.{}.setting", column.name),
          fmt::format("no row has the setting '{}'; expected a dotted key such as model.attention.share",
                      column.source));
    }
  }
}

/// A sweep at a scale is another sweep, by its name too.
std::optional<Scale> read_scale(YamlReader& reader, const Node& root, const Node& section, SweepSpec& spec) {
  if (const Node::Entry* command = root.entry("command")) {
    reader.problems().add(command->place, "command", "a command has no scale; expected base");
    return std::nullopt;
  }
  Scale scale{reader, section};
  if (!spec.name.empty() && !scale.name().empty()) spec.name += "-" + scale.name();
  spec.gpus = 0;  // a small study runs in any one slot
  if (scale.seeds()) {
    spec.seeds_rule.reset();
    spec.seeds.resize(static_cast<std::size_t>(*scale.seeds()));
    std::iota(spec.seeds.begin(), spec.seeds.end(), 0);
  }
  return scale;
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
  if (seeds && seeds->kind == Node::Kind::kMapping) {
    spec.seeds_rule = read_seed_rule(reader, *seeds);
    spec.seeds.resize(spec.seeds_rule ? spec.seeds_rule->max : 1);
    std::iota(spec.seeds.begin(), spec.seeds.end(), 0);
  } else {
    spec.seeds = seeds ? read_seeds(reader, *seeds) : std::vector<std::int64_t>{0};
  }
  read_resources(reader, root, spec);
  read_retry(reader, root, spec);
  spec.limits = read_limits(reader, root);
  std::optional<Scale> scale;
  if (const Node* section = root.find("scale")) scale = read_scale(reader, root, *section, spec);
  const std::vector<DraftRow> drafts = read_drafts(reader, root, shared, spec);
  if (root.find("base") || root.find("command") || is_printed_alone(root)) {
    std::vector<std::vector<std::string>> made_equal;
    spec.rows = resolve_rows(drafts, shared, spec.command, setting_columns(spec.table),
                             scale ? &*scale : nullptr, made_equal, problems);
    if (scale) {
      spec.table.scale = scale->name();
      const auto notes = scale->notes(made_equal);
      spec.table.notes.insert(spec.table.notes.begin(), notes.begin(), notes.end());
    }
    check_seeds_of_sources(drafts, spec.seeds, problems);
    const bool varies = root.find("factors") && root.find("factors")->find("data.name");
    if (!spec.command) spec.data = data_of(spec.rows, varies, problems);
    set_baselines(spec.table, drafts, table, spec.rows, problems);
    if (!spec.command && drafts.empty()) check_base(shared, problems);
  }
  if (const Node* resources = root.find("resources")) check_gpus(spec, *resources, problems);
  if (const Node* pivot = table ? table->find("pivot") : nullptr)
    check_pivot(spec.table, spec.rows, *pivot, problems);
  if (table) check_table(spec.table, spec.rows, *table, problems);
  if (spec.seeds_rule && !spec.rows.empty()) check_seed_rule(*spec.seeds_rule, *seeds, spec, problems);
  problems.throw_if_any();
  spec.canonical = canonical_spec(spec);
  spec.doubts = problems.doubts();
  return spec;
}

}  // namespace abl::sweeps
