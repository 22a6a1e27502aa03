// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "printing/grid.h"
#include "printing/medium.h"
#include "printing/notes.h"
#include "printing/row_names.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "views/comparison.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::Table;
using ablate::v1::TableRow;

/// The text format: its lines, and the columns that the terminal had no room for.
struct Text {
  std::vector<std::string> lines, left_out;
};

/// A star in a column of its own marks the baseline, so that no cut name hides it.
Text text_of(const Table& table, const Medium* medium, const TableOptions& options) {
  Sheet sheet = sheet_of(table, options);
  const bool starred = std::ranges::any_of(sheet.rows, &Sheet::Row::baseline);
  if (starred) sheet.columns.insert(sheet.columns.begin(), Grid::Column{});
  Grid grid{sheet.columns};
  std::string group;
  std::vector<bool> signed_columns(sheet.columns.size());
  for (const auto& row : sheet.rows)
    for (std::size_t i = 0; i < row.signs.size(); ++i)
      if (!row.signs[i].empty()) signed_columns[i] = true;
  for (auto& row : sheet.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (row.marks[i] == "doubtful") row.cells[i] += kDoubt;
      if (medium && (row.best[i] || row.marks[i] == "bold"))
        row.cells[i] = medium->paint(Style::kBold, row.cells[i]);
      else if (medium && row.underlined(i))
        row.cells[i] = medium->paint(Style::kUnderline, row.cells[i]);
      if (signed_columns[i]) row.cells[i] += row.signs[i].empty() ? "  " : " " + row.signs[i];
    }
    if (row.group != group) grid.add_heading(group = row.group);
    if (starred) row.cells.insert(row.cells.begin(), row.baseline ? "*" : "");
    grid.add(std::move(row.cells));
  }
  Text text;
  for (const auto& column : grid.fit_to(medium ? medium->width() : 0)) {
    std::string name =
        (column.group.empty()                                               ? ""
         : column.group == table.paper_heading() || column.group == "paper" ? "the paper's "
                                                                            : column.group + " ") +
        column.heading;
    if (std::ranges::find(text.left_out, name) == text.left_out.end())  // there may be several of n
      text.left_out.push_back(std::move(name));
  }
  text.lines = grid.lines(medium);
  return text;
}

/// Whether what is called percents is at most 1 throughout.
bool looks_like_fractions(const Table& table, int column) {
  if (unit_of(table.columns(column)) != protocol::Unit::kPercent) return false;
  bool any = false;
  for (const auto& row : table.rows()) {
    const Cell& cell = row.cells(column);
    if (!cell.has_mean() || !std::isfinite(cell.mean()) || cell.mean() == 0) continue;
    if (std::abs(cell.mean()) > 1) return false;
    any = true;
  }
  return any;
}

/// What the lines do not say: what the star is, what there was no room for, and what a unit does not do.
std::string text_notes(const Table& table, const Text& text) {
  std::string notes;
  const bool of_levels = table.has_pivot() && !table.pivoted();
  if (std::ranges::any_of(table.rows(), [&](const TableRow& row) { return views::is_baseline(table, row); }))
    notes += fmt::format("* baseline{}\n", of_levels ? " of each " + table.pivot().by()
                                           : RowNames{table}.are_factors() && !table.baseline().empty()
                                               ? ": " + table.baseline()
                                               : "");
  if (const std::string legend = comparison_legend(table); !legend.empty()) notes += legend + "\n";
  if (!text.left_out.empty())
    notes += fmt::format("no room for: {} (a wider terminal, or --format csv, has them)\n",
                         fmt::join(text.left_out, ", "));
  for (int column = 0; column < table.columns_size(); ++column)
    if (looks_like_fractions(table, column))
      notes += fmt::format("{}: as the runs report it, unit \"%\" does not multiply by 100\n",
                           name_of(table.columns(column)));
  return notes;
}

}  // namespace

std::vector<std::string> table_lines(const Table& table, const Medium* medium) {
  return text_of(table, medium, {}).lines;
}

std::string text_table(const Table& table, const TableOptions& options, const Medium* medium) {
  const Text text = text_of(table, medium, options);
  std::string notes = text_notes(table, text);
  for (const std::string& gap : gaps_of(table).lines) notes += fmt::format("– {}\n", gap);
  for (const auto& note : table.notes()) notes += fmt::format("note: {}\n", printable_line(note));
  return fmt::format("{}\n{}{}", fmt::join(text.lines, "\n"), notes.empty() ? "" : "\n", notes);
}

}  // namespace abl::printing
