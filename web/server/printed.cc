// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "printing/selection.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "views/views.h"
#include "web/server/routes.h"

namespace abl::web {
namespace {

using printing::TableFormat;

// Of a table that is whole in memory while it is printed.
constexpr std::uint32_t kMostRows = 10'000, kMostWithStatistics = 1000;
constexpr views::Range kFlag{.highest = 1, .otherwise = 0};
constexpr std::size_t kMostBytes = 64 << 20;  // of its rows, as they are kept

[[noreturn]] void reject(const std::string& message) { throw Error{Code::kInvalidArgument, message}; }

struct Kind {
  TableFormat format;
  std::string_view type, ending;
};
constexpr std::array<Kind, 5> kKinds{{{TableFormat::kText, "text/plain", "txt"},
                                      {TableFormat::kMarkdown, "text/markdown", "md"},
                                      {TableFormat::kCsv, "text/csv", "csv"},
                                      {TableFormat::kLatex, "text/x-tex", "tex"},
                                      {TableFormat::kHtml, "text/html", "html"}}};

const Kind& kind_of(const views::Query& query) {
  const TableFormat format = printing::table_format(query.has("format") ? query.text("format") : "text");
  const auto kind = std::ranges::find(kKinds, format, &Kind::format);
  if (kind == kKinds.end()) reject("format: 'json' is what sweeps/NAME/table answers");
  return *kind;
}

/// What stands in `\label{…}` as it is.
std::string label_of(const views::Query& query) {
  const std::string label = query.text("label");
  if (!std::ranges::all_of(label, [](unsigned char c) {
        return std::isalnum(c) ||
               std::string_view{":._-/+"}.find(static_cast<char>(c)) != std::string_view::npos;
      }))
    reject(fmt::format("label: expected letters, digits and any of :._-/+, got '{}'", label));
  return label;
}

struct Asked {
  printing::TableOptions options;
  printing::Selection selection;
  bool statistics = false;
};

Asked asked_of(const views::Query& query, TableFormat format) {
  Asked asked{.options = {.caption = query.text("caption"), .label = label_of(query)},
              .selection = {.sort = query.text("sort"),
                            .without = query.texts("without"),
                            .complete = query.number("complete") == 1,
                            .find = query.text("find")},
              .statistics = query.number("statistics") == 1};
  asked.options.flat = !asked.selection.sort.empty();
  if (query.has("columns")) {
    if (format == TableFormat::kCsv) reject("columns: csv has all that there is, expected none");
    asked.options.shown = printing::shown_named(query.text("columns"));
  }
  if (asked.statistics && !query.text("pivot").empty()) reject("statistics: not available with pivot");
  if (asked.statistics && format != TableFormat::kText && format != TableFormat::kCsv)
    reject("statistics: expected the format text or csv");
  if ((!asked.options.caption.empty() || !asked.options.label.empty()) && format != TableFormat::kLatex &&
      format != TableFormat::kHtml)
    reject("caption, label: expected the format latex or html");
  return asked;
}

/// Places "0-3,7" of `places`, each below `rows`, ascending. Throws: Error{kInvalidArgument}.
std::vector<std::uint32_t> places_of(const std::string& text, std::uint32_t rows) {
  std::vector<std::uint32_t> places;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto number = [&](std::uint64_t lowest) {
    std::uint32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || value < lowest || value >= rows)
      reject(fmt::format("places: expected ascending places of rows below {} at character {}, such as 0-3,7",
                         rows, at - text.data() + 1));
    at = next;
    return value;
  };
  while (at != end) {
    if (!places.empty() && *at++ != ',') reject("places: expected a comma between places, such as 0-3,7");
    const std::uint32_t first = number(places.empty() ? 0 : std::uint64_t{places.back()} + 1);
    std::uint32_t last = first;
    if (at != end && *at == '-') {
      ++at;
      last = number(first);
    }
    for (std::uint32_t place = first; place <= last; ++place) places.push_back(place);
  }
  return places;
}

/// Ids of the rows that are asked for by their places. Throws: Error{kInvalidArgument} where others stand
/// there by now than the caller has seen.
std::set<std::string> rows_at(const views::Query& query, const views::Stored& stored) {
  const auto flat = stored.tables.table(stored.db, query.name, true);
  const auto all = flat->part({.count = std::min(flat->rows(), kMostRows), .most_bytes = kMostBytes});
  std::set<std::string> ids;
  std::uint32_t digest = 2'166'136'261;  // FNV-1a
  for (const std::uint32_t place :
       places_of(query.text("places"), static_cast<std::uint32_t>(all.rows_size()))) {
    const std::string& id = all.rows(static_cast<int>(place)).id();
    for (const char byte : id + "\n")
      digest = (digest ^ std::uint32_t{static_cast<unsigned char>(byte)}) * 16'777'619u;
    ids.insert(id);
  }
  if (query.has("ids") && query.text("ids") != fmt::format("{:08x}", digest))
    reject(fmt::format("ids: the table of {} has other rows at these places now: choose them again",
                       query.name));
  return ids;
}

std::string print(const views::Query& query, const views::Stored& stored, TableFormat format) {
  Asked asked = asked_of(query, format);
  const auto kept =
      asked.statistics ? stored.tables.table(stored.db, query.name, true) : views::table_asked(query, stored);
  const std::uint32_t most = asked.statistics ? kMostWithStatistics : kMostRows;
  ablate::v1::Table table = kept->part(
      {.count = std::min(kept->rows(), most), .with_statistics = asked.statistics, .most_bytes = kMostBytes});
  if (table.left_out() > 0)
    throw Error{
        Code::kOutOfRange,
        fmt::format("{} has {} rows, more than the {} that are printed here: 'ablate table {}' prints all",
                    query.name, kept->rows(), table.rows_size(), query.name)};
  if (table.search()) {
    if (format == TableFormat::kLatex || format == TableFormat::kHtml)
      reject("the points of a search are printed as text, markdown or csv");
    const auto tuning = views::tuning(stored.db, query.name, {.count = kMostRows});
    if (tuning.left_out() > 0)
      throw Error{Code::kOutOfRange,
                  fmt::format("{} has more than {} points: run 'ablate table {}' for all of them", query.name,
                              kMostRows, query.name)};
    return printing::tuning_text(tuning, format);
  }
  if (query.has("places")) asked.selection.only = rows_at(query, stored);
  printing::select(table, asked.selection);
  return printing::render_table(table, format, nullptr, asked.options) +
         (asked.statistics && format == TableFormat::kText ? printing::statistics_text(table) : "");
}

/// A name of the sweep's, of which no header's sign is a part.
std::string file_name(std::string name, std::string_view ending) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != '_'; }, '_');
  return fmt::format("{}.{}", name, ending);
}

/// Throws: Error{kInvalidArgument} for parameters that do not fit together, as `ablate table` does;
/// Error{kOutOfRange} for a table with too many rows for one answer.
Answer printed_table(const views::Query& query, const views::Stored& stored) {
  const Kind& kind = kind_of(query);
  std::string text = print(query, stored, kind.format);
  // to be kept, and never shown as a page of this origin
  return Answer{.type = fmt::format("{}; charset=utf-8", kind.type),
                .body = std::move(text),
                .headers = {{"Content-Disposition", fmt::format("attachment; filename=\"{}\"",
                                                                file_name(query.name, kind.ending))}}};
}

}  // namespace

const TextRead kPrintedRead{
    .path = "sweeps/*/printed",
    .of = &views::kSweepOfPath,
    .about = "The sweep's table as `ablate table` prints it, to the byte; of up to 10,000 rows",
    .parameters =
        {{.name = "format", .about = "text (unless said), markdown, csv, latex or html"},
         {.name = "columns", .about = "What stands for each column, such as `value,n,paper`"},
         {.name = "sort", .about = "By this column, with `-` before it the other way round"},
         {.name = "without", .about = "Leaves this column out", .repeats = true},
         {.name = "complete", .about = "1: rows without a missing value alone", .number = kFlag},
         {.name = "find", .about = "Rows that have this text alone"},
         {.name = "places", .about = "Rows at these places of the file alone, from 0, such as 0-3,7"},
         {.name = "ids",
          .about =
              "With places: FNV-1a (32 bits, hexadecimal) of the rows' ids with a line feed behind each; "
              "refused where other rows stand there"},
         {.name = "long_form", .about = "1: a table that its file pivots as it is without", .number = kFlag},
         views::kPivotAsked,
         {.name = "statistics",
          .about = "1: with each cell's statistics; text or csv, of up to 1000 rows",
          .number = kFlag},
         {.name = "caption", .about = "Of latex and html"},
         {.name = "label", .about = "Of latex and html: letters, digits and any of :._-/+"}},
    .types = {"text/plain", "text/markdown", "text/csv", "text/x-tex", "text/html"},
    .answer = printed_table,
};

}  // namespace abl::web
