// SPDX-License-Identifier: Apache-2.0
#include "sweeps/table_spec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/metric_name.h"
#include "base/nearest_name.h"
#include "sweeps/metric_names.h"

namespace abl::sweeps {
namespace {

/// Fills in what follows from the name of a metric or count.
void describe(Column& column, std::span<const Quantity> known) {
  const Quantity* quantity = find(known, column.source);
  if (!quantity) return;
  column.unit = quantity->unit;
  column.better = to_text(better_by_name(column.source));
}

class ColumnReader {
 public:
  ColumnReader(YamlReader& reader, bool command) : reader_{reader}, command_{command} {}

  Column read(const Node& node, std::string field) {
    Column column;
    if (!reader_.is_mapping(node, field)) return column;
    reader_.allow_only(node, field,
                       {"name", "metric", "count", "setting", "take", "unit", "digits", "heading", "better"});
    if (const Node* name = node.find("name")) {
      column.name = reader_.text(*name, field + ".name").value_or("");
      if (!column.name.empty()) field = "table.columns." + column.name;
    } else {
      problem(node.place, field + ".name", "missing; expected a text");
    }
    column.heading = column.name;
    read_source(node, field, column);
    if (const Node* heading = node.find("heading"))
      column.heading = reader_.text(*heading, field + ".heading").value_or(column.name);
    column.unit_fits = column.kind == Column::Kind::kCount && !column.unit.empty() && !node.find("unit");
    if (const Node* unit = node.find("unit"))
      column.unit = unit->kind == Node::Kind::kScalar && unit->text.empty()
                        ? ""
                        : read_choice(*unit, field + ".unit", {"%", "M", "G"});
    if (const Node* better = node.find("better")) {
      column.better = read_choice(*better, field + ".better", {"higher", "lower", "none"});
    }
    if (const Node* digits = node.find("digits")) {
      column.digits = static_cast<int>(reader_.whole_number(*digits, field + ".digits", 0, 10).value_or(2));
    }
    read_take(node, field, column);
    return column;
  }

 private:
  void problem(Place place, const std::string& field, const std::string& message,
               const std::string& nearest = {}) {
    reader_.problems().add(place, field, message, nearest);
  }
  std::string read_choice(const Node& node, const std::string& field,
                          const std::vector<std::string>& choices) {
    return reader_.choice(node, field, choices).value_or("");
  }

  void read_source(const Node& node, const std::string& field, Column& column) {
    const Node* metric = node.find("metric");
    const Node* count = node.find("count");
    const Node* setting = node.find("setting");
    if ((metric != nullptr) + (count != nullptr) + (setting != nullptr) != 1) {
      problem(node.place, field, "expected one of metric, count and setting");
    } else if (metric) {
      column.source = reader_.text(*metric, field + ".metric").value_or("");
      describe(column, trainer_metrics());
      const std::vector<std::string> known = names(trainer_metrics());
      if (!command_ && !column.source.empty() && !find(trainer_metrics(), column.source)) {
        problem(metric->place, field + ".metric",
                fmt::format("no trial emits '{}'; expected {}", column.source, any_of(known)),
                nearest_name(column.source, known));
      }
    } else if (count) {
      column.kind = Column::Kind::kCount;
      column.source = read_choice(*count, field + ".count", names(count_modes()));
      describe(column, count_modes());
      if (command_)
        problem(count->place, field + ".count",
                "the model of a command is not known, so nothing of it can be counted");
    } else {
      column.kind = Column::Kind::kSetting;
      column.source = reader_.text(*setting, field + ".setting").value_or("");
    }
  }

  void read_take(const Node& node, const std::string& field, Column& column) {
    const Node* take = node.find("take");
    if (!take) return;
    column.take = read_choice(*take, field + ".take", {"last", "best", "min", "max", "mean"});
    if (column.kind != Column::Kind::kMetric) {
      problem(take->place, field + ".take", "only a metric has several values to take one from");
    } else if (column.take == "best" && column.better == "none") {
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

}  // namespace

TableSpec read_table(YamlReader& reader, const Node* table, Place around, bool command) {
  TableSpec spec;
  const Node* columns = nullptr;
  if (table && reader.is_mapping(*table, "table")) {
    reader.allow_only(*table, "table", {"baseline", "paper_heading", "columns"});
    if (const Node* baseline = table->find("baseline"))
      spec.baseline = reader.text(*baseline, "table.baseline").value_or("");
    if (const Node* heading = table->find("paper_heading")) {
      spec.paper_heading = reader.text(*heading, "table.paper_heading").value_or("");
    }
    columns = table->find("columns");
  }
  if (columns) {
    read_columns(reader, *columns, command, spec);
  } else if (command) {
    reader.problems().add(
        table ? table->place : around, "table.columns",
        "missing; expected the metrics that the command emits, such as [{name: acc, metric: accuracy}]");
  } else {
    spec.columns.push_back({.name = "top1", .heading = "val/top1", .source = "val/top1"});
    describe(spec.columns.back(), trainer_metrics());
  }
  return spec;
}

std::vector<std::string> setting_columns(const TableSpec& table) {
  std::vector<std::string> keys;
  for (const Column& column : table.columns) {
    if (column.kind == Column::Kind::kSetting && !column.source.empty()) keys.push_back(column.source);
  }
  return keys;
}

void check_table(const TableSpec& table, const std::vector<Row>& rows, const Node& section,
                 Problems& problems) {
  const Node* baseline = section.find("baseline");
  std::vector<std::string> ids;
  for (const Row& row : rows) ids.push_back(row.id);
  if (baseline && !rows.empty() && !table.baseline.empty() &&
      std::ranges::find(ids, table.baseline) == ids.end()) {
    problems.add(baseline->place, "table.baseline", fmt::format("no row has the id '{}'", table.baseline),
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

}  // namespace abl::sweeps
