// SPDX-License-Identifier: Apache-2.0
#include "printing/table.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/nearest_name.h"
#include "views/json.h"

namespace abl::printing {

using ablate::v1::Table;

TableFormat table_format(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, format] : kTableFormats) {
    if (known == name) return format;
    names.push_back(known);
  }
  throw Error{Code::kInvalidArgument, fmt::format("unknown format '{}'; expected {}{}", name, any_of(names),
                                                  did_you_mean(name, names))};
}

std::string render_table(const Table& table, TableFormat format, const Medium* medium,
                         const TableOptions& options) {
  switch (format) {
    case TableFormat::kText:
      return text_table(table, options, medium);
    case TableFormat::kMarkdown:
      return markdown_table(table, options);
    case TableFormat::kCsv:
      return csv_table(table);
    case TableFormat::kLatex:
      return latex_table(table, options);
    case TableFormat::kHtml:
      return html_table(table, options);
    case TableFormat::kJson:
      return views::to_json(table, true) + "\n";
  }
  throw Error{Code::kInternal, "unknown table format"};
}

}  // namespace abl::printing
