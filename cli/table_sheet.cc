// SPDX-License-Identifier: Apache-2.0
#include "cli/table_sheet.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/row_names.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

bool is_number(const Column& column) { return column.kind() != Column::KIND_SETTING; }

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

/// With a mark where a value was made before a correction; a note says of which.
std::string text_of(const Cell& cell) {
  return cell.text() + (cell.before_mend() > 0 ? " †" : "") + (cell.packed() > 0 ? " ‡" : "");
}

// what goes first where there is no room
enum Rank { kOtherMetric = 1, kCountOfSeeds, kCount, kSetting, kPaper };

/// The first metric is never left out.
int rank_of(const Table& table, int column) {
  if (table.columns(column).kind() == Column::KIND_COUNT) return kCount;
  if (!is_metric(table.columns(column))) return kSetting;
  for (int before = 0; before < column; ++before)
    if (is_metric(table.columns(before))) return kOtherMetric;
  return 0;
}

constexpr int kLeastOfASetting = 6;

}  // namespace

std::string name_of(const Column& column) {
  return column.heading().empty() ? column.name() : column.heading();
}

std::string heading_of(const Column& column) {
  const std::string name = name_of(column);
  const bool says_unit = column.unit().empty() || name.find("(" + column.unit() + ")") != std::string::npos;
  return says_unit ? name : fmt::format("{} ({})", name, column.unit());
}

std::optional<protocol::Unit> unit_of(const Column& column) {
  return value_named<protocol::Unit>(column.unit());
}

Sheet sheet_of(const Table& table) {
  Sheet sheet;
  const auto counted = counted_columns(table);
  const RowNames names{table};
  sheet.columns = names.columns();
  sheet.names = sheet.columns.size();
  for (int column = 0; column < table.columns_size(); ++column) {
    const bool number = is_number(table.columns(column));
    sheet.columns.push_back({.heading = heading_of(table.columns(column)),
                             .right_aligned = number,
                             .least = number ? 0 : kLeastOfASetting,
                             .rank = names.names_rows(column) ? 0 : rank_of(table, column)});
    if (counted[static_cast<std::size_t>(column)])
      sheet.columns.push_back({.heading = "n", .right_aligned = true, .rank = kCountOfSeeds});
  }
  const std::string paper = table.paper_heading().empty() ? "paper" : table.paper_heading();
  for (const auto& column : table.columns())
    if (column.has_paper())
      sheet.columns.push_back({.heading = heading_of(column),
                               .right_aligned = is_number(column),
                               .group = paper,
                               .rank = kPaper});

  for (int index = 0; index < table.rows_size(); ++index) {
    const TableRow& row = table.rows(index);
    Sheet::Row line{.cells = names.cells(index), .baseline = row.id() == table.baseline()};
    line.best.resize(line.cells.size());
    const auto add = [&](std::string text, bool best = false) {
      line.cells.push_back(std::move(text));
      line.best.push_back(best);
    };
    for (int column = 0; column < table.columns_size(); ++column) {
      add(text_of(row.cells(column)), row.cells(column).comparison().best());
      if (counted[static_cast<std::size_t>(column)]) add(count_of(row.cells(column)));
    }
    for (int column = 0; column < table.columns_size(); ++column)
      if (table.columns(column).has_paper()) add(row.cells(column).paper());
    sheet.rows.push_back(std::move(line));
  }
  return sheet;
}

}  // namespace abl::cli
