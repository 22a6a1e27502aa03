// SPDX-License-Identifier: Apache-2.0
#include "cli/table_renderer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <unordered_map>

#include "base/error.h"
#include "base/nearest_name.h"
#include "base/printable.h"
#include "cli/csv.h"
#include "cli/grid.h"
#include "cli/row_names.h"
#include "cli/table_sheet.h"
#include "cli/terminal.h"
#include "storage/table.h"
#include "views/comparison.h"
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

/// Behind a value of the paper that is in doubt; a note says why.
constexpr const char* kDoubt = " (?)";

/// A star in a column of its own marks the baseline, so that no cut name hides it.
Text text_of(const Table& table, const Terminal* terminal, const TableOptions& options) {
  Sheet sheet = sheet_of(table, options.shown);
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
      if (terminal && (row.best[i] || row.marks[i] == "bold"))
        row.cells[i] = terminal->paint(Style::kBold, row.cells[i]);
      else if (terminal && row.underlined(i))
        row.cells[i] = terminal->paint(Style::kUnderline, row.cells[i]);
      if (signed_columns[i]) row.cells[i] += row.signs[i].empty() ? "  " : " " + row.signs[i];
    }
    if (row.group != group) grid.add_heading(group = row.group);
    if (starred) row.cells.insert(row.cells.begin(), row.baseline ? "*" : "");
    grid.add(std::move(row.cells));
  }
  Text text;
  for (const auto& column : grid.fit_to(terminal ? terminal->width() : 0)) {
    std::string name =
        (column.group.empty()                                               ? ""
         : column.group == table.paper_heading() || column.group == "paper" ? "the paper's "
                                                                            : column.group + " ") +
        column.heading;
    if (std::ranges::find(text.left_out, name) == text.left_out.end())  // there may be several of n
      text.left_out.push_back(std::move(name));
  }
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

}  // namespace

std::string comparison_legend(const Table& table) {
  bool tested = false, directed = false, different = false;
  for (const auto& row : table.rows()) {
    for (const auto& cell : row.cells()) {
      using Comparison = ablate::v1::Comparison;
      const auto verdict = cell.comparison().verdict();
      tested = tested || cell.has_p();
      directed = directed || verdict == Comparison::VERDICT_BETTER || verdict == Comparison::VERDICT_WORSE;
      different = different || verdict == Comparison::VERDICT_DIFFERENT;
    }
  }
  if (!tested) return "";
  return fmt::format("{}{}{}{}: {}\n", directed ? "↑ better, ↓ worse" : "", directed && different ? ", " : "",
                     different ? "≠ other" : "",
                     directed || different ? " than the baseline" : "no row differs from its baseline",
                     table.compare().legend());
}

namespace {

/// What the lines do not say: what the star is, what there was no room for, and what a unit does not do.
std::string text_notes(const Table& table, const Text& text) {
  std::string notes;
  const bool of_levels = table.has_pivot() && !table.pivoted();
  if (std::ranges::any_of(table.rows(), [&](const TableRow& row) { return views::is_baseline(table, row); }))
    notes += fmt::format("* baseline{}\n", of_levels ? " of each " + table.pivot().by()
                                           : RowNames{table}.are_factors() && !table.baseline().empty()
                                               ? ": " + table.baseline()
                                               : "");
  notes += comparison_legend(table);
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
      if (!row.not_trained().empty()) continue;  // a note of the table says so
      const auto [place, fresh] = places_here.try_emplace(cell.missing(), here.size());
      if (fresh) here.push_back({.why = cell.missing()});
      here[place->second].rows.push_back(cell.row().empty() ? row.id() : cell.row());
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

/// What stands below a table, each line after `mark`.
std::string notes_below(const Table& table, std::string_view mark) {
  std::string text;
  for (const auto& note : table.notes()) text += fmt::format("{}{}\n", mark, in_one_line(note));
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

std::string markdown(const Table& table, const TableOptions& options) {
  const Sheet sheet = sheet_of(table, options.shown);
  const auto named = named_cells(sheet);
  const auto escape = [](std::string_view text) {  // what Markdown would take for a sign of its own
    return replace_each(text,
                        {{'|', "\\|"}, {'\n', " "}, {'<', "\\<"}, {'*', "\\*"}, {'`', "\\`"}, {'[', "\\["}});
  };
  std::string head = "|", rule = "|", body;
  for (const auto& column : sheet.columns) {
    head += fmt::format(" {}{} |", escape(column.heading),
                        column.group.empty() ? "" : fmt::format(", {}", escape(column.group)));
    rule += column.right_aligned ? " ---: |" : " --- |";
  }
  for (std::size_t row = 0; row < named.size(); ++row) {
    if (const std::string& group = sheet.rows[row].group;
        group != (row > 0 ? sheet.rows[row - 1].group : "")) {
      body += fmt::format("| {} |", group.empty() ? "" : "**" + escape(group) + "**");
      for (std::size_t column = 1; column < named[row].size(); ++column) body += " |";
      body += "\n";
    }
    body += "|";
    for (std::size_t column = 0; column < named[row].size(); ++column) {
      const std::string& printed = sheet.rows[row].marks[column];
      const std::string mark = sheet.rows[row].best[column] || printed == "bold" ? "**" : "";
      std::string text = escape(named[row][column]);
      if (sheet.rows[row].underlined(column)) text = "<u>" + text + "</u>";
      if (printed == "doubtful") text += kDoubt;
      const std::string& sign = sheet.rows[row].signs[column];
      body += fmt::format(" {0}{1}{0}{2} |", mark, text, sign.empty() ? "" : " " + sign);
    }
    body += "\n";
  }
  const std::string legend = comparison_legend(table);
  return head + "\n" + rule + "\n" + body +
         below((legend.empty() ? "" : "- " + legend) + notes_below(table, "- "));
}

using Numbers = std::vector<std::pair<std::string, std::optional<double>>>;

/// What CSV has of a cell's statistics: the ends of columns' names, and values where there are some.
Numbers statistics_of(const Cell& cell, double unit) {
  const auto& said = cell.statistics();
  const auto known = [](bool is_known, double value) {
    return is_known ? std::optional{value} : std::nullopt;
  };
  const auto in_unit = [&](bool is_known, double value) { return known(is_known, value / unit); };
  return {{"_se", in_unit(said.has_standard_error(), said.standard_error())},
          {"_low", in_unit(said.has_interval(), said.interval().low())},
          {"_high", in_unit(said.has_interval(), said.interval().high())},
          {"_difference", in_unit(said.has_difference(), said.difference())},
          {"_difference_low", in_unit(said.has_difference_interval(), said.difference_interval().low())},
          {"_difference_high", in_unit(said.has_difference_interval(), said.difference_interval().high())},
          {"_p", known(cell.has_p(), cell.p())},
          {"_p_corrected", known(cell.has_p_corrected(), cell.p_corrected())},
          {"_g", known(said.has_g(), said.g())},
          {"_g_low", known(said.has_g_interval(), said.g_interval().low())},
          {"_g_high", known(said.has_g_interval(), said.g_interval().high())},
          {"_to_see", in_unit(said.has_to_see(), said.to_see())},
          {"_more_seeds", known(said.has_more_seeds(), said.more_seeds())}};
}

/// A table for programs: columns by name, means and deviations apart with all their digits, an empty field
/// where there is no value.
std::string csv(const Table& table) {
  std::string text = "row,label,baseline";
  const bool with_statistics = std::ranges::any_of(table.rows(), [](const TableRow& row) {
    return std::ranges::any_of(row.cells(), [](const Cell& cell) { return cell.has_statistics(); });
  });
  const bool grouped =
      std::ranges::any_of(table.rows(), [](const TableRow& row) { return !row.group().empty(); });
  const bool untrained =
      std::ranges::any_of(table.rows(), [](const TableRow& row) { return !row.not_trained().empty(); });
  const bool diverged = std::ranges::any_of(table.rows(), [](const TableRow& row) {
    return std::ranges::any_of(row.cells(), [](const Cell& cell) { return cell.diverged_size() > 0; });
  });
  const bool scaled = !table.scale().empty();
  text +=
      fmt::format("{}{}{}", grouped ? ",group" : "", untrained ? ",not_trained" : "", scaled ? ",scale" : "");
  for (const auto& column : table.columns()) {
    if (column.kind() != Column::KIND_PRINTED) text += fmt::format(",{}", csv_field(column.name()));
    if (is_metric(column))
      text += fmt::format(",{},{}", csv_field(column.name() + "_sd"), csv_field(column.name() + "_n"));
    if (is_metric(column) && diverged) text += fmt::format(",{}", csv_field(column.name() + "_diverged"));
    if (is_metric(column) && with_statistics)
      for (const auto& [name, number] : statistics_of(Cell{}, 1))
        text += fmt::format(",{}", csv_field(column.name() + name));
    if (column.has_paper()) text += fmt::format(",{}", csv_field(column.name() + "_paper"));
  }
  text += "\n";
  for (const auto& row : table.rows()) {
    text += fmt::format("{},{},{}", csv_field(row.id()), csv_field(row.label()),
                        views::is_baseline(table, row) ? "yes" : "no");
    if (grouped) text += fmt::format(",{}", csv_field(row.group()));
    if (untrained) text += fmt::format(",{}", row.not_trained());
    if (scaled) text += fmt::format(",{}", csv_field(table.scale()));
    for (int index = 0; index < table.columns_size(); ++index) {
      const Column& column = table.columns(index);
      const Cell& cell = row.cells(index);
      const double unit = storage::unit_factor(unit_of(column));
      const bool sd = cell.has_sd() && std::isfinite(cell.mean());
      if (column.kind() == Column::KIND_SETTING)
        text +=
            fmt::format(",{}", cell.text() == "–" && !cell.missing().empty() ? "" : csv_field(cell.text()));
      else if (column.kind() != Column::KIND_PRINTED)
        text += fmt::format(",{}", cell.has_mean() ? csv_number(cell.mean() / unit) : "");
      if (is_metric(column)) text += fmt::format(",{},{}", sd ? csv_number(cell.sd() / unit) : "", cell.n());
      if (is_metric(column) && diverged) text += fmt::format(",{}", cell.diverged_size());
      if (is_metric(column) && with_statistics)
        for (const auto& [name, number] : statistics_of(cell, unit))
          text += fmt::format(",{}", number ? csv_number(*number) : "");
      if (column.has_paper()) text += fmt::format(",{}", csv_field(cell.paper()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> table_lines(const Table& table, const Terminal* terminal) {
  return text_of(table, terminal, {}).lines;
}

TableFormat table_format(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, format] : kTableFormats) {
    if (known == name) return format;
    names.push_back(known);
  }
  throw Error{Code::kInvalidArgument, fmt::format("unknown format '{}'; expected {}{}", name, any_of(names),
                                                  did_you_mean(name, names))};
}

std::string render_table(const Table& table, TableFormat format, const Terminal* terminal,
                         const TableOptions& options) {
  switch (format) {
    case TableFormat::kText: {
      const Text text = text_of(table, terminal, options);
      const std::string notes = text_notes(table, text) + missing_notes(table) + notes_below(table, "note: ");
      return fmt::format("{}\n{}{}", fmt::join(text.lines, "\n"), notes.empty() ? "" : "\n", notes);
    }
    case TableFormat::kMarkdown:
      return markdown(table, options);
    case TableFormat::kCsv:
      return csv(table);
    case TableFormat::kLatex:
      return latex_table(table, options);
    case TableFormat::kHtml:
      return html_table(table, options);
    case TableFormat::kJson:
      return views::to_json(table, true) + "\n";
  }
  throw Error{Code::kInternal, "unknown table format"};
}

}  // namespace abl::cli
