// SPDX-License-Identifier: Apache-2.0
// `table:` of a sweep file: its columns, and what it is compared with.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/nearest_name.h"
#include "protocol/metrics.h"
#include "protocol/probe_results.h"
#include "sweeps/attributes.h"
#include "sweeps/sections.h"

namespace abl::sweeps {
namespace {

/// "; expected 'a', 'b'" of a few rows; of many those that have the name as a part of theirs.
std::string rows_like(const std::string& name, const std::vector<DraftRow>& rows) {
  constexpr std::size_t kFew = 8, kExamples = 3;
  std::vector<std::string> all, alike;
  for (const DraftRow& row : rows) {
    if (row.id.empty() || row.id.starts_with(',')) continue;  // which is an error of its own
    all.push_back(fmt::format("'{}'", row.id));
    if (alike.size() < kExamples && row.id.find(name) != std::string::npos) alike.push_back(all.back());
  }
  if (all.empty()) return {};
  if (all.size() <= kFew) return fmt::format("; expected {}", fmt::join(all, ", "));
  return alike.empty() ? fmt::format("; the {} rows include {}", all.size(), all.front())
                       : fmt::format("; rows containing it: {}", fmt::join(alike, ", "));
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
    reader_.allow_only(node, field, Part::kColumn);
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
    const Node* probe = node.find("probe");
    const Node* count = node.find("count");
    const Node* setting = node.find("setting");
    const Node* expression = node.find("expression");
    const Node* printed = node.find("printed");
    if ((metric != nullptr) + (probe != nullptr) + (count != nullptr) + (setting != nullptr) +
            (expression != nullptr) + (printed != nullptr) !=
        1) {
      problem(node.place, field, "expected one of metric, probe, count, setting, expression and printed");
    } else if (metric) {
      column.source = reader_.text(*metric, field + ".metric").value_or("");
      describe(column, protocol::trainer_metrics());
      const std::vector<std::string> known = names(protocol::trainer_metrics());
      if (!command_ && !column.source.empty() && !find(protocol::trainer_metrics(), column.source)) {
        problem(metric->place, field + ".metric",
                fmt::format("no trial emits '{}'; expected {}", column.source, any_of(known)),
                nearest_name(column.source, known));
      }
    } else if (probe) {
      column.source = read_probe_source(reader_, *probe, field + ".probe");
      column.better = protocol::better_by_name(column.source);
      column.unit = protocol::unit_by_name(column.source);
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
    if (node.find("probe")) {
      problem(take->place, field + ".take", "a probe result has one value; expected no take");
    } else if (column.kind != Column::Kind::kMetric) {
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

}  // namespace

TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command,
                     const config::Task& task) {
  TableSpec spec;
  const Node* columns = nullptr;
  if (table && reader.is_mapping(*table, "table")) {
    reader.allow_only(*table, "table", Part::kTable);
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
    const std::string name{task.metrics.front()}, judged = protocol::metric::of(protocol::metric::kVal, name);
    spec.columns.push_back({.name = name, .heading = judged, .source = judged});
    describe(spec.columns.back(), protocol::trainer_metrics());
  }
  if (const Node* pivot = table ? table->find("pivot") : nullptr) read_pivot(reader, *pivot, spec);
  if (const Node* show = table ? table->find("show") : nullptr) read_show(reader, *show, spec);
  return spec;
}

std::vector<std::string> setting_columns(const TableSpec& table) {
  std::vector<std::string> keys;
  for (const Column& column : table.columns) {
    if (column.kind == Column::Kind::kSetting && !column.source.empty()) keys.push_back(column.source);
  }
  if (table.pivot) keys.push_back(table.pivot->by);
  return keys;
}

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
    if (!name.empty() && std::ranges::find(names, name) == names.end()) {
      const std::string nearest = nearest_name(name, names);
      problems.add(place, field,
                   fmt::format("unknown row '{}'{}", name, nearest.empty() ? rows_like(name, drafts) : ""),
                   nearest);
    }
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

}  // namespace abl::sweeps
