// SPDX-License-Identifier: Apache-2.0
#include "cli/table_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>

#include "cli/csv.h"
#include "cli/grid.h"
#include "cli/table_sheet.h"
#include "views/views.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;

constexpr std::string_view kPlusMinus = " ± ";

bool is_metric(const Column& column) { return column.kind() == Column::KIND_METRIC; }

Grid grid_of(const Table& table) {
  Sheet sheet = sheet_of(table);
  Grid grid{sheet.columns};
  for (auto& row : sheet.rows) grid.add(std::move(row));
  return grid;
}

/// Why cells are empty, a line for each reason: "acc – rows a, b: 1 of 2 trials is queued".
std::string missing_notes(const Table& table) {
  std::vector<std::string> order;
  std::map<std::string, std::string> rows;  // "column: reason" -> row ids
  for (int column = 0; column < table.columns_size(); ++column)
    for (const auto& row : table.rows()) {
      const Cell& cell = row.cells(column);
      if (cell.missing().empty() || (cell.n() > 0 && cell.unfilled() == 0)) continue;
      const std::string why = fmt::format("{}: {}", name_of(table.columns(column)), cell.missing());
      auto [entry, fresh] = rows.try_emplace(why);
      if (fresh) order.push_back(why);
      entry->second += (entry->second.empty() ? "" : ", ") + row.id();
    }
  std::string notes;
  for (const auto& why : order) {
    const bool several = rows[why].find(", ") != std::string::npos;
    notes += fmt::format("– {} (row{} {})\n", why, several ? "s" : "", rows[why]);
  }
  return notes;
}

/// What stands below a table, each line after `mark`.
std::string notes_below(const Table& table, std::string_view mark) {
  std::string text;
  for (const auto& note : table.notes()) text += fmt::format("{}{}\n", mark, note);
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

std::string markdown(const Table& table) {
  const Sheet sheet = sheet_of(table);
  const auto escape = [](std::string_view text) { return replace_each(text, {{'|', "\\|"}, {'\n', " "}}); };
  std::string head = "|", rule = "|", body;
  for (const auto& column : sheet.columns) {
    head += fmt::format(" {}{} |", escape(column.heading),
                        column.group.empty() ? "" : fmt::format(", {}", escape(column.group)));
    rule += column.right_aligned ? " ---: |" : " --- |";
  }
  for (const auto& row : sheet.rows) {
    body += "|";
    for (const auto& cell : row) body += fmt::format(" {} |", escape(cell));
    body += "\n";
  }
  return head + "\n" + rule + "\n" + body + below(notes_below(table, "- "));
}

std::string latex_text(std::string_view text) {
  std::string escaped = replace_each(text, {{'\\', "\\textbackslash{}"},
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
  return replace_all(replace_all(replace_all(escaped, "±", "$\\pm$"), "–", "--"), "†", "$^\\dagger$");
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
  for (const auto& row : sheet.rows) {
    for (std::size_t column = 0; column < row.size(); ++column)
      body += (column ? " & " : "") + latex_text(row[column]);
    body += " \\\\\n";
  }
  return fmt::format(
      "% needs \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{}}}\n\\toprule\n{}{}{} "
      "\\\\\n\\midrule\n{}\\bottomrule\n"
      "\\end{{tabular}}\n{}",
      alignment, groups, rules, heads, body, notes_below(table, "% "));
}

/// A table for programs: columns by name, means and deviations apart, an empty field where there is no value.
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
      const bool empty = column.kind() != Column::KIND_SETTING && !cell.has_mean();
      const std::size_t middle = is_metric(column) ? cell.text().find(kPlusMinus) : std::string::npos;
      text += fmt::format(",{}", csv_field(empty ? "" : cell.text().substr(0, middle)));
      const std::string sd =
          middle == std::string::npos ? "" : cell.text().substr(middle + kPlusMinus.size());
      if (is_metric(column)) text += fmt::format(",{},{}", sd, cell.n());
      if (column.has_paper()) text += fmt::format(",{}", csv_field(cell.paper()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> table_lines(const Table& table, const Terminal* terminal) {
  return grid_of(table).lines(terminal);
}

std::string render_table(const Table& table, TableFormat format, const Terminal* terminal) {
  switch (format) {
    case TableFormat::kText:
      return grid_of(table).text(terminal) + below(missing_notes(table) + notes_below(table, "note: "));
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
