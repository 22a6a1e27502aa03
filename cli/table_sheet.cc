// SPDX-License-Identifier: Apache-2.0
#include "cli/table_sheet.h"

#include <fmt/format.h>

#include <algorithm>

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

bool is_number(const Column& column) { return column.kind() != Column::KIND_SETTING; }
bool is_metric(const Column& column) { return column.kind() == Column::KIND_METRIC; }

std::string count_of(const Cell& cell) {
  return cell.n() == cell.of() ? fmt::format("{}", cell.n()) : fmt::format("{}/{}", cell.n(), cell.of());
}

/// The metric columns after which a column n stands: the last one alone when all have the same n in every
/// row.
std::vector<bool> counted_columns(const Table& table) {
  std::vector<int> metrics;
  for (int column = 0; column < table.columns_size(); ++column)
    if (is_metric(table.columns(column))) metrics.push_back(column);
  const bool same = std::ranges::all_of(table.rows(), [&](const TableRow& row) {
    return std::ranges::all_of(
        metrics, [&](int column) { return row.cells(column).n() == row.cells(metrics[0]).n(); });
  });
  std::vector<bool> counted(static_cast<std::size_t>(table.columns_size()), false);
  for (const int column : metrics)
    counted[static_cast<std::size_t>(column)] = !same || column == metrics.back();
  return counted;
}

/// With a mark where a value is from before a mend; a note says of which.
std::string text_of(const Cell& cell) { return cell.before_mend() > 0 ? cell.text() + " †" : cell.text(); }

std::string label_of(const Table& table, const TableRow& row) {
  const std::string label = row.label().empty() ? row.id() : row.label();
  return row.id() == table.baseline() ? label + " (baseline)" : label;
}

}  // namespace

std::string name_of(const Column& column) {
  return column.heading().empty() ? column.name() : column.heading();
}

std::string heading_of(const Column& column) {
  const std::string name = name_of(column);
  const bool says_unit = column.unit().empty() || name.find("(" + column.unit() + ")") != std::string::npos;
  return says_unit ? name : fmt::format("{} ({})", name, column.unit());
}

Sheet sheet_of(const Table& table) {
  Sheet sheet;
  const auto counted = counted_columns(table);
  sheet.columns = {{.heading = "row"}, {.heading = "label"}};
  for (int column = 0; column < table.columns_size(); ++column) {
    sheet.columns.push_back(
        {.heading = heading_of(table.columns(column)), .right_aligned = is_number(table.columns(column))});
    if (counted[static_cast<std::size_t>(column)])
      sheet.columns.push_back({.heading = "n", .right_aligned = true});
  }
  const std::string paper = table.paper_heading().empty() ? "paper" : table.paper_heading();
  for (const auto& column : table.columns())
    if (column.has_paper())
      sheet.columns.push_back(
          {.heading = heading_of(column), .right_aligned = is_number(column), .group = paper});

  for (const auto& row : table.rows()) {
    std::vector<std::string> cells{row.id(), label_of(table, row)};
    for (int column = 0; column < table.columns_size(); ++column) {
      cells.push_back(text_of(row.cells(column)));
      if (counted[static_cast<std::size_t>(column)]) cells.push_back(count_of(row.cells(column)));
    }
    for (int column = 0; column < table.columns_size(); ++column)
      if (table.columns(column).has_paper()) cells.push_back(row.cells(column).paper());
    sheet.rows.push_back(std::move(cells));
  }
  return sheet;
}

}  // namespace abl::cli
