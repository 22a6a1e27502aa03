// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "cli/row_curves.h"
#include "cli/tables.h"
#include "printing/table.h"
#include "views/comparison.h"

namespace abl::cli {
namespace {

namespace v1 = ablate::v1;

constexpr int kMostTrialsDrawn = 1000;
constexpr int kMostRowsDescribed = 200;
constexpr std::size_t kMostFileBytes = 256 << 10;

/// Lines of text, each as HTML has it.
std::string html_lines(const std::string& text) {
  std::istringstream lines{text};
  std::string all;
  for (std::string line; std::getline(lines, line);) all += printing::html_text(line) + "\n";
  return all;
}

std::string details(const std::string& summary, const std::string& text) {
  return fmt::format("<details><summary>{}</summary>\n<pre>{}</pre></details>\n",
                     printing::html_text(summary), html_lines(text));
}

std::string curves_part(Source& source, const v1::Table& table) {
  std::set<std::string> metrics;
  for (const auto& column : table.columns())
    if (column.kind() == v1::Column::KIND_METRIC) metrics.insert(column.source());
  std::string text;
  try {
    const auto curves = row_curves(source, table, metrics, kMostTrialsDrawn);
    for (const auto& [metric, rows] : curves.metrics) {
      const bool is_curve = std::ranges::any_of(rows, [](const Curve& row) { return row.points.size() > 1; });
      if (is_curve) text += fmt::format("<figure>\n{}</figure>\n", curves_svg(table, metric, rows));
    }
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument && error.code() != Code::kFailedPrecondition) throw;
    text = fmt::format("<p>{}</p>\n", printing::html_text(error.what()));
  }
  return text.empty() ? "" : "<h2>Curves</h2>\n" + text;
}

std::string indented_json(const std::string& json) {
  const auto parsed = nlohmann::ordered_json::parse(json, nullptr, false);
  return parsed.is_discarded() ? json
                               : parsed.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// What each row ran, as its first run says.
std::string rows_part(Source& source, const v1::Table& table) {
  std::string text;
  int described = 0;
  for (const auto& row : table.rows()) {
    std::uint32_t run = 0;
    for (const auto& cell : row.cells())
      if (run == 0 && cell.runs_size() > 0) run = cell.runs(0).run();
    if (run == 0) continue;
    if (++described > kMostRowsDescribed) break;
    const auto detail = source.run(run);
    text += details(fmt::format("{}{}{}", row.id(),
                                row.label().empty() || row.label() == row.id() ? "" : ": " + row.label(),
                                views::is_baseline(table, row) ? " (baseline)" : ""),
                    indented_json(detail.config_json()));
  }
  if (described > kMostRowsDescribed)
    text += fmt::format("<p>The first {} rows; 'ablate why' has each.</p>\n", kMostRowsDescribed);
  return text.empty() ? "" : "<h2>Configuration</h2>\n" + text;
}

std::string statistics_part(const v1::Table& table) {
  std::string text;
  for (int column = 0; column < table.columns_size(); ++column)
    for (const auto& row : table.rows()) {
      if (column >= row.cells_size() || row.cells(column).statistics().lines().empty()) continue;
      std::string lines;
      for (const auto& line : row.cells(column).statistics().lines()) lines += "  " + line + "\n";
      text += fmt::format("{}, {}\n{}", row.id(), table.columns(column).name(), lines);
    }
  return text.empty() ? ""
                      : "<h2>Statistics</h2>\n" + details("Intervals, differences, tests, effects", text);
}

}  // namespace

std::string report_html(Source& source, const std::string& sweep) {
  const v1::Table table = source.table(sweep, {.statistics = true, .long_form = true});
  std::string page = printing::html_table(table, {});
  std::string below = curves_part(source, table) + statistics_part(table) + rows_part(source, table);
  std::string file = source.rows(sweep, 0, 1).text();
  if (file.size() > kMostFileBytes) file = file.substr(0, kMostFileBytes) + "\n…";
  if (!file.empty()) below += "<h2>Sweep file</h2>\n" + details(sweep, file);
  // no script, nothing from elsewhere, whatever a label says
  const std::string policy =
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n";
  page.insert(page.find("<title>"), policy);
  page.insert(page.rfind("</body>"), below);
  return page;
}

}  // namespace abl::cli
