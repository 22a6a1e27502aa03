// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/printable.h"
#include "printing/notes.h"
#include "printing/sheet.h"
#include "printing/table.h"

namespace abl::printing {

using ablate::v1::Table;

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : printable_line(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

namespace {

constexpr std::string_view kStyle =
    R"(body{font:16px/1.4 system-ui,sans-serif;margin:2rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;border-top:2px solid;border-bottom:2px solid}
caption{text-align:left;padding:0 0 .6rem;font-weight:600}
th,td{padding:.25rem .7rem;text-align:left;vertical-align:bottom}
thead{border-bottom:1px solid}
tbody+tbody{border-top:1px solid #888}
.number{text-align:right;font-variant-numeric:tabular-nums}
.group{text-align:center;border-bottom:1px solid #888}
.heading{font-style:italic;font-weight:400}
tbody th{font-weight:400}
.baseline{background:#f0f0f0}
)";

/// The heading rows: the groups of columns, if there are any, then the columns.
std::string html_head(const Sheet& sheet) {
  std::string groups, heads;
  bool any = false;
  for (std::size_t first = 0; first < sheet.columns.size();) {
    const std::string& group = sheet.columns[first].group;
    std::size_t end = first + 1;
    while (end < sheet.columns.size() && sheet.columns[end].group == group) ++end;
    any |= !group.empty();
    groups += group.empty() ? fmt::format("<td colspan=\"{}\"></td>", end - first)
                            : fmt::format("<th scope=\"colgroup\" colspan=\"{}\" class=\"group\">{}</th>",
                                          end - first, html_text(group));
    first = end;
  }
  for (const auto& column : sheet.columns)
    heads += fmt::format("<th scope=\"col\"{}>{}</th>", column.right_aligned ? " class=\"number\"" : "",
                         html_text(column.heading));
  return (any ? "<tr>" + groups + "</tr>\n" : "") + "<tr>" + heads + "</tr>\n";
}

std::string html_cell(const Sheet& sheet, const Sheet::Row& row, std::size_t column) {
  std::string text = html_text(row.cells[column]);
  const std::string& printed = row.marks[column];
  if (row.baseline && column + 1 == sheet.names) text += " (baseline)";
  if (printed == "doubtful") text += kDoubt;
  if (row.underlined(column)) text = "<u>" + text + "</u>";
  if (row.best[column] || printed == "bold") text = "<strong>" + text + "</strong>";
  if (!row.signs[column].empty()) text += "&nbsp;" + html_text(row.signs[column]);
  if (column < sheet.names) return fmt::format("<th scope=\"row\">{}</th>", text);
  return fmt::format("<td{}>{}</td>", sheet.columns[column].right_aligned ? " class=\"number\"" : "", text);
}

}  // namespace

std::string html_table(const Table& table, const TableOptions& options) {
  const Sheet sheet = sheet_of(table, options);
  const std::string caption = html_text(!options.caption.empty() ? options.caption
                                        : !table.title().empty() ? table.title()
                                                                 : table.sweep());
  std::string body, group;
  for (std::size_t i = 0; i < sheet.rows.size(); ++i) {
    const Sheet::Row& row = sheet.rows[i];
    if (i == 0 || row.group != group) {
      body += i == 0 ? "<tbody>\n" : "</tbody>\n<tbody>\n";
      if (!row.group.empty())
        body += fmt::format("<tr><th scope=\"rowgroup\" colspan=\"{}\" class=\"heading\">{}</th></tr>\n",
                            row.cells.size(), html_text(row.group));
      group = row.group;
    }
    body += row.baseline ? "<tr class=\"baseline\">" : "<tr>";
    for (std::size_t column = 0; column < row.cells.size(); ++column) body += html_cell(sheet, row, column);
    body += "</tr>\n";
  }
  if (!sheet.rows.empty()) body += "</tbody>\n";
  std::string notes;
  if (const std::string legend = comparison_legend(table); !legend.empty())
    notes += fmt::format("<li>{}</li>\n", html_text(legend));
  for (const std::string& gap : gaps_of(table).lines) notes += fmt::format("<li>– {}</li>\n", html_text(gap));
  for (const auto& note : table.notes()) notes += fmt::format("<li>{}</li>\n", html_text(note));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
      "charset=\"utf-8\">\n<title>{}</title>\n<style>\n{}</style>\n"
      "</head>\n<body>\n<table{}>\n<caption>{}</caption>\n<thead>\n{}</thead>\n{}</table>\n{}</body>\n</"
      "html>\n",
      caption, kStyle, options.label.empty() ? "" : fmt::format(" id=\"{}\"", html_text(options.label)),
      caption, html_head(sheet), body, notes.empty() ? "" : "<ul>\n" + notes + "</ul>\n");
}

}  // namespace abl::printing
