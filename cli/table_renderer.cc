// SPDX-License-Identifier: Apache-2.0
#include "cli/table_renderer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <unordered_map>

#include "base/printable.h"
#include "cli/csv.h"
#include "cli/grid.h"
#include "cli/row_names.h"
#include "cli/table_sheet.h"
#include "cli/terminal.h"
#include "storage/table.h"
#include "views/json.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

/// The text format: its lines, and the columns that the terminal had no room for.
struct Text {
  std::vector<std::string> lines, left_out;
};

/// A star in a column of its own marks the baseline, so that no cut name hides it.
Text text_of(const Table& table, const Terminal* terminal) {
  Sheet sheet = sheet_of(table);
  const bool starred = std::ranges::any_of(sheet.rows, &Sheet::Row::baseline);
  if (starred) sheet.columns.insert(sheet.columns.begin(), Grid::Column{});
  Grid grid{sheet.columns};
  for (auto& row : sheet.rows) {
    for (std::size_t i = 0; terminal && i < row.cells.size(); ++i)
      if (row.best[i]) row.cells[i] = terminal->paint(Style::kBold, row.cells[i]);
    if (starred) row.cells.insert(row.cells.begin(), row.baseline ? "*" : "");
    grid.add(std::move(row.cells));
  }
  Text text;
  for (const auto& column : grid.fit_to(terminal ? terminal->width() : 0))
    text.left_out.push_back((column.group.empty() ? "" : "the paper's ") + column.heading);
  text.lines = grid.lines(terminal);
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
  if (std::ranges::any_of(table.rows(), [&](const TableRow& row) { return row.id() == table.baseline(); }))
    notes += fmt::format("* baseline{}\n", RowNames{table}.are_factors() ? ": " + table.baseline() : "");
  if (!text.left_out.empty())
    notes += fmt::format("no room for: {} (a wider terminal, or --format csv, has them)\n",
                         fmt::join(text.left_out, ", "));
  for (int column = 0; column < table.columns_size(); ++column)
    if (looks_like_fractions(table, column))
      notes += fmt::format("{}: as the runs report it, unit \"%\" does not multiply by 100\n",
                           name_of(table.columns(column)));
  return notes;
}

/// Why cells are empty, a line for each reason: "– acc, loss: 1 of 2 trials is queued (rows a, b)".
std::string missing_notes(const Table& table) {
  struct Gap {
    std::string why;
    std::vector<std::string> rows, columns;
  };
  std::vector<Gap> gaps;
  std::unordered_map<std::string, std::vector<std::size_t>> places;  // among these, by their reasons
  for (int column = 0; column < table.columns_size(); ++column) {
    std::vector<Gap> here;
    std::unordered_map<std::string, std::size_t> places_here;
    for (const auto& row : table.rows()) {
      const Cell& cell = row.cells(column);
      if (cell.missing().empty() || (cell.n() > 0 && cell.unfilled() == 0)) continue;
      const auto [place, fresh] = places_here.try_emplace(cell.missing(), here.size());
      if (fresh) here.push_back({.why = cell.missing()});
      here[place->second].rows.push_back(row.id());
    }
    for (Gap& gap : here) {
      auto& known = places[gap.why];
      auto same =
          std::ranges::find_if(known, [&](std::size_t other) { return gaps[other].rows == gap.rows; });
      if (same == known.end()) {
        same = known.insert(same, gaps.size());
        gaps.push_back(std::move(gap));
      }
      gaps[*same].columns.push_back(name_of(table.columns(column)));
    }
  }
  std::string notes;
  for (const Gap& gap : gaps)
    notes += fmt::format("– {}: {} (row{} {})\n", fmt::join(gap.columns, ", "), gap.why,
                         gap.rows.size() == 1 ? "" : "s", fmt::join(gap.rows, ", "));
  return notes;
}

/// In one line, without what no typesetter can read: what follows a line's end would be another row, or no
/// comment.
std::string one_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

/// What stands below a table, each line after `mark`.
std::string notes_below(const Table& table, std::string_view mark) {
  std::string text;
  for (const auto& note : table.notes()) text += fmt::format("{}{}\n", mark, one_line(note));
  return text;
}

/// A blank line before what is below a table, where there is anything.
std::string below(const std::string& notes) { return notes.empty() ? notes : "\n" + notes; }

std::string replace_each(std::string_view text, const std::map<char, std::string>& replacements) {
  std::string result;
  for (const char c : text) {
    const auto found = replacements.find(c);
    result += found == replacements.end() ? std::string{c} : found->second;
  }
  return result;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// The cells, with the baseline said behind the last of its names.
std::vector<std::vector<std::string>> named_cells(const Sheet& sheet) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : sheet.rows) {
    rows.push_back(row.cells);
    std::string& name = rows.back()[sheet.names - 1];
    if (row.baseline) name += name.empty() ? "(baseline)" : " (baseline)";
  }
  return rows;
}

std::string markdown(const Table& table) {
  const Sheet sheet = sheet_of(table);
  const auto named = named_cells(sheet);
  const auto escape = [](std::string_view text) { return replace_each(text, {{'|', "\\|"}, {'\n', " "}}); };
  std::string head = "|", rule = "|", body;
  for (const auto& column : sheet.columns) {
    head += fmt::format(" {}{} |", escape(column.heading),
                        column.group.empty() ? "" : fmt::format(", {}", escape(column.group)));
    rule += column.right_aligned ? " ---: |" : " --- |";
  }
  for (std::size_t row = 0; row < named.size(); ++row) {
    body += "|";
    for (std::size_t column = 0; column < named[row].size(); ++column) {
      const std::string mark = sheet.rows[row].best[column] ? "**" : "";
      body += fmt::format(" {0}{1}{0} |", mark, escape(named[row][column]));
    }
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body + below(notes_below(table, "- "));
}

std::string latex_text(std::string_view text) {
  std::string escaped = replace_each(one_line(text), {{'\\', "\\textbackslash{}"},
                                                      {'&', "\\&"},
                                                      {'%', "\\%"},
                                                      {'$', "\\$"},
                                                      {'#', "\\#"},
                                                      {'_', "\\_"},
                                                      {'{', "\\{"},
                                                      {'}', "\\}"},
                                                      {'~', "\\textasciitilde{}"},
                                                      {'^', "\\textasciicircum{}"},
                                                      {'<', "\\textless{}"},
                                                      {'>', "\\textgreater{}"}});
  return replace_all(
      replace_all(replace_all(replace_all(escaped, "±", "$\\pm$"), "–", "--"), "†", "$^\\dagger$"), "‡",
      "$^\\ddagger$");
}

std::string latex(const Table& table) {
  const Sheet sheet = sheet_of(table);
  std::string alignment, groups, rules, heads, body;
  for (std::size_t column = 0; column < sheet.columns.size(); ++column) {
    alignment += sheet.columns[column].right_aligned ? 'r' : 'l';
    heads += (column ? " & " : "") + latex_text(sheet.columns[column].heading);
  }
  const auto first =
      std::ranges::find_if(sheet.columns, [](const auto& column) { return !column.group.empty(); });
  if (first != sheet.columns.end()) {  // the papers' columns are the last ones
    const auto before = first - sheet.columns.begin(), spanned = sheet.columns.end() - first;
    for (auto column = before; column > 0; --column) groups += " &";
    groups = fmt::format("{} \\multicolumn{{{}}}{{c}}{{{}}} \\\\\n", groups.substr(1), spanned,
                         latex_text(first->group));
    rules = fmt::format("\\cmidrule(lr){{{}-{}}}\n", before + 1, sheet.columns.size());
  }
  const auto named = named_cells(sheet);
  for (std::size_t row = 0; row < named.size(); ++row) {
    for (std::size_t column = 0; column < named[row].size(); ++column) {
      const std::string text = latex_text(named[row][column]);
      body += (column ? " & " : "") + (sheet.rows[row].best[column] ? "\\textbf{" + text + "}" : text);
    }
    body += " \\\\\n";
  }
  return fmt::format(
      "% needs \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}{}{} "
      "\\\\\n\\midrule\n{}\\bottomrule\n"
      "\\end{{tabular}}\n{}",
      alignment, groups, rules, heads, body, notes_below(table, "% "));
}

/// A table for programs: columns by name, means and deviations apart with all their digits, an empty field
/// where there is no value.
std::string csv(const Table& table) {
  std::string text = "row,label,baseline";
  for (const auto& column : table.columns()) {
    text += fmt::format(",{}", csv_field(column.name()));
    if (is_metric(column))
      text += fmt::format(",{},{}", csv_field(column.name() + "_sd"), csv_field(column.name() + "_n"));
    if (column.has_paper()) text += fmt::format(",{}", csv_field(column.name() + "_paper"));
  }
  text += "\n";
  for (const auto& row : table.rows()) {
    text += fmt::format("{},{},{}", csv_field(row.id()), csv_field(row.label()),
                        row.id() == table.baseline() ? "yes" : "no");
    for (int index = 0; index < table.columns_size(); ++index) {
      const Column& column = table.columns(index);
      const Cell& cell = row.cells(index);
      const double unit = storage::unit_factor(unit_of(column));
      const bool sd = cell.has_sd() && std::isfinite(cell.mean());
      if (column.kind() == Column::KIND_SETTING)
        text += fmt::format(",{}", csv_field(cell.text()));
      else
        text += fmt::format(",{}", cell.has_mean() ? csv_number(cell.mean() / unit) : "");
      if (is_metric(column)) text += fmt::format(",{},{}", sd ? csv_number(cell.sd() / unit) : "", cell.n());
      if (column.has_paper()) text += fmt::format(",{}", csv_field(cell.paper()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> table_lines(const Table& table, const Terminal* terminal) {
  return text_of(table, terminal).lines;
}

std::string render_table(const Table& table, TableFormat format, const Terminal* terminal) {
  switch (format) {
    case TableFormat::kText: {
      const Text text = text_of(table, terminal);
      const std::string notes = text_notes(table, text) + missing_notes(table) + notes_below(table, "note: ");
      return fmt::format("{}\n{}{}", fmt::join(text.lines, "\n"), notes.empty() ? "" : "\n", notes);
    }
    case TableFormat::kMarkdown:
      return markdown(table);
    case TableFormat::kCsv:
      return csv(table);
    case TableFormat::kLatex:
      return latex(table);
    case TableFormat::kJson:
      return views::to_json(table, true) + "\n";
  }
  throw Error{Code::kInternal, "unknown table format"};
}

}  // namespace abl::cli
