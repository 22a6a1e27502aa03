// SPDX-License-Identifier: Apache-2.0
#include "planning/printed_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "storage/table.h"
#include "views/convert.h"

namespace abl::planning {
namespace {

storage::Cell cell_of(const sweeps::Row& row, const sweeps::Column& column,
                      const ModelCounter::Result& counts) {
  storage::Cell cell;
  if (const auto paper = row.paper.find(column.name); paper != row.paper.end()) cell.paper = paper->second;
  if (const auto mark = row.marks.find(column.name); mark != row.marks.end()) cell.mark = mark->second;
  switch (column.kind) {
    case sweeps::Column::Kind::kMetric:
    case sweeps::Column::Kind::kExpression:
      if (row.not_trained) cell.missing = fmt::format("not trained: {}", row.not_trained_why);
      break;
    case sweeps::Column::Kind::kCount: {
      cell.of = 1;
      const auto model = counts.counts.find(row.model);
      if (model == counts.counts.end())
        cell.missing = row.model.empty() ? "not counted: its model is not known here" : counts.missing;
      else if (const auto count = model->second.find(column.source); count == model->second.end())
        cell.missing = fmt::format("not counted: {} is not of such models", column.source);
      else
        cell.mean = count->second, cell.n = 1;
      break;
    }
    case sweeps::Column::Kind::kSetting:
      if (const auto set = row.set.find(column.source); set != row.set.end())
        cell.text = set->second;
      else
        cell.missing = "the row does not set " + column.source;
      break;
    case sweeps::Column::Kind::kPrinted:
      break;
  }
  return cell;
}

/// As the store says it: in the unit that fits the column's values, or the paper's.
void write_column(std::size_t index, bool unit_fits, storage::Table& table) {
  storage::Column& column = table.columns[index];
  double largest = 0;
  for (const storage::TableRow& row : table.rows) {
    if (!row.cells[index].paper.empty()) largest = std::numeric_limits<double>::infinity();
    largest = std::max(largest, row.cells[index].mean.value_or(0));
  }
  if (unit_fits) column.unit = storage::fitting_unit(column.unit, largest);
  for (storage::TableRow& row : table.rows)
    if (storage::Cell& cell = row.cells[index]; cell.text.empty()) {
      const bool is_whole = column.kind == storage::Column::Kind::kCount && !column.unit && cell.mean &&
                            *cell.mean == std::floor(*cell.mean);
      cell.text = storage::format_cell(cell.mean, {}, is_whole ? std::optional{0} : column.digits,
                                       column.unit, column.cut);
    }
}

}  // namespace

storage::Column stored_column(const sweeps::Column& column) {
  return {.name = column.name,
          .heading = column.heading,
          .kind = column.kind,
          .source = column.source,
          .take = column.take,
          .unit = column.unit,
          .better = column.better,
          .digits = column.digits,
          .unit_fits = column.unit_fits,
          .cut = column.cut};
}

ablate::v1::Table printed_table(const sweeps::SweepSpec& spec, const ModelCounter::Result& counts) {
  storage::Table table{.sweep = spec.name,
                       .baseline = spec.table.baseline,
                       .paper_heading = spec.table.paper_heading,
                       .attributes_json = nlohmann::json::parse(spec.canonical).at("table").dump()};
  for (const sweeps::Column& column : spec.table.columns) table.columns.push_back(stored_column(column));
  std::vector<std::string> sets;
  for (const sweeps::Row& row : spec.rows) {
    storage::TableRow& line = table.rows.emplace_back();
    line.id = row.id, line.label = row.label, line.group = row.group, line.baseline = row.baseline;
    line.not_trained = row.not_trained, line.not_trained_why = row.not_trained_why;
    for (const sweeps::Column& column : spec.table.columns)
      line.cells.push_back(cell_of(row, column, counts));
    sets.push_back(nlohmann::json(row.set).dump());
  }
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    write_column(i, spec.table.columns[i].unit_fits, table);
  storage::place_in_pivot(table, sets);
  return views::to_proto(table);
}

}  // namespace abl::planning
