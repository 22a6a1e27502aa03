// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "printing/notes.h"
#include "printing/sheet.h"
#include "printing/table.h"

namespace abl::printing {
namespace {

using ablate::v1::Table;

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

/// What Markdown would take for a sign of its own is none.
std::string escape(std::string_view text) {
  return replace_each(text,
                      {{'|', "\\|"}, {'\n', " "}, {'<', "\\<"}, {'*', "\\*"}, {'`', "\\`"}, {'[', "\\["}});
}

/// A list below the table.
std::string notes_below(const Table& table) {
  std::string notes;
  if (const std::string legend = comparison_legend(table); !legend.empty()) notes += "- " + legend + "\n";
  for (const std::string& gap : gaps_of(table).lines)
    notes += fmt::format("- – {}\n", escape(printable_line(gap)));
  for (const auto& note : table.notes()) notes += fmt::format("- {}\n", escape(printable_line(note)));
  return notes.empty() ? notes : "\n" + notes;
}

}  // namespace

std::string markdown_table(const Table& table, const TableOptions& options) {
  const Sheet sheet = sheet_of(table, options);
  const auto named = named_cells(sheet);
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
  return head + "\n" + rule + "\n" + body + notes_below(table);
}

}  // namespace abl::printing
