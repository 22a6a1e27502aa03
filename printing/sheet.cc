// SPDX-License-Identifier: Apache-2.0
#include "printing/sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/nearest_name.h"
#include "printing/row_names.h"
#include "views/comparison.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;
using protocol::Shown;

bool is_number(const Column& column) { return column.kind() != Column::KIND_SETTING; }

std::string count_of(const Cell& cell) {
  if (cell.of() == 0) return "";  // of a row that is not trained
  return cell.n() == cell.of() ? fmt::format("{}", cell.n()) : fmt::format("{}/{}", cell.n(), cell.of());
}

/// The metric columns after which a column n stands: the last one alone when all have the same n in every
/// row.
std::vector<bool> counted_columns(const Table& table) {
  std::vector<int> metrics;
  for (int column = 0; column < table.columns_size(); ++column)
    if (is_metric(table.columns(column))) metrics.push_back(column);
  const bool same = std::ranges::all_of(table.rows(), [&](const TableRow& row) {
    std::optional<std::uint32_t>
        n;  // of cells that can have values: others are of rows that are not trained, or of none
    return std::ranges::all_of(metrics, [&](int column) {
      const Cell& cell = row.cells(column);
      return cell.of() == 0 || std::exchange(n, cell.n()).value_or(cell.n()) == cell.n();
    });
  });
  std::vector<bool> counted(static_cast<std::size_t>(table.columns_size()), false);
  for (const int column : metrics)
    counted[static_cast<std::size_t>(column)] = !same || column == metrics.back();
  return counted;
}

/// With a mark where a value was made before a correction; a note says of which.
std::string text_of(const Cell& cell) {
  return cell.text() + (cell.before_mend() > 0 ? " †" : "") + (cell.packed() > 0 ? " ‡" : "") +
         (cell.older() > 0 ? " §" : "") + (cell.imported() > 0 ? " ¶" : "");
}

/// Of a difference to the baseline that the table's test finds.
std::string sign_of(const Cell& cell) {
  switch (cell.comparison().verdict()) {
    case ablate::v1::Comparison::VERDICT_BETTER:
      return "↑";
    case ablate::v1::Comparison::VERDICT_WORSE:
      return "↓";
    case ablate::v1::Comparison::VERDICT_DIFFERENT:
      return "≠";
    default:  // of another release too
      return "";
  }
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

std::vector<Shown> shown_of(const Table& table, const std::vector<Shown>& asked) {
  if (!asked.empty()) return asked;
  std::vector<Shown> shown;
  for (const std::string& word : table.show())
    if (const auto known = value_named<Shown>(word)) shown.push_back(*known);
  return shown.empty() ? std::vector{Shown::kValue, Shown::kN, Shown::kPaper} : shown;
}

std::vector<Shown> shown_named(const std::string& words) {
  std::vector<Shown> shown;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t end = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, end - at);
    const auto known = value_named<Shown>(word);
    if (!known)
      throw Error{Code::kInvalidArgument,
                  fmt::format("unknown part of a column '{}'; expected {}{}", word, any_of(names_of<Shown>()),
                              did_you_mean(word, names_of<Shown>()))};
    if (std::ranges::find(shown, *known) == shown.end()) shown.push_back(*known);
    at = end + 1;
  }
  return shown;
}

namespace {

/// A column of the sheet: what of which column of the table it shows.
struct SheetPlace {
  int column = 0;
  Shown shows = Shown::kValue;
  bool of_all = false;  ///< n of a pivoted table, which is the same at every level
};

/// The columns behind the names, in their order: those of a level, and with them the papers', stand together;
/// other papers' come last, and differences to them behind those.
std::vector<SheetPlace> places_of(const Table& table, const std::vector<Shown>& shown) {
  const auto counted = counted_columns(table);
  const auto shows = [&](Shown what) { return std::ranges::find(shown, what) != shown.end(); };
  const bool one_n = table.pivoted() && std::ranges::count(counted, true) == 1;
  std::vector<SheetPlace> places;
  const auto add_papers = [&](int column, Shown what) {
    const bool any = what == Shown::kPaper ? table.columns(column).has_paper()
                                           : std::ranges::any_of(table.rows(), [&](const TableRow& row) {
                                               return !row.cells(column).paper_difference().empty();
                                             });
    if (shows(what) && any) places.push_back({column, what});
  };
  for (int column = 0; column < table.columns_size(); ++column) {
    const bool printed = table.columns(column).kind() == Column::KIND_PRINTED;
    if (shows(Shown::kValue) && !printed) places.push_back({column, Shown::kValue});
    if (shows(Shown::kN) && counted[static_cast<std::size_t>(column)] && !one_n)
      places.push_back({column, Shown::kN});
    if (table.columns(column).level().empty()) continue;
    add_papers(column, Shown::kPaper);
    add_papers(column, Shown::kDifference);
  }
  if (shows(Shown::kN) && one_n)
    places.push_back({static_cast<int>(std::ranges::find(counted, true) - counted.begin()), Shown::kN, true});
  for (const Shown what : {Shown::kPaper, Shown::kDifference})
    for (int column = 0; column < table.columns_size(); ++column)
      if (table.columns(column).level().empty()) add_papers(column, what);
  return places;
}

/// A cell of a metric that can have values; of a row without, any of a metric.
const Cell& first_with_seeds(const Table& table, const TableRow& row) {
  int any = 0;
  for (int column = table.columns_size(); column-- > 0;) {
    if (!is_metric(table.columns(column))) continue;
    any = column;
    if (row.cells(column).of() > 0) break;
  }
  return row.cells(any);
}

/// Whether several columns stand under each level: then their papers' say of which they are.
bool has_several_of_a_level(const Table& table) {
  std::string of;
  for (const Column& column : table.columns()) {
    if (column.level().empty()) continue;
    if (!of.empty() && of != column.of()) return true;
    of = column.of();
  }
  return false;
}

Grid::Column column_at(const Table& table, const RowNames& names, const SheetPlace& place) {
  const Column& column = table.columns(place.column);
  const std::string paper = table.paper_heading().empty() ? "paper" : table.paper_heading();
  const bool of_level = !column.level().empty(), number = is_number(column);
  switch (place.shows) {
    case Shown::kValue:
      return {.heading = heading_of(column),
              .right_aligned = number,
              .group = column.level(),
              .least = number ? 0 : kLeastOfASetting,
              .rank = names.names_rows(place.column) ? 0 : rank_of(table, place.column)};
    case Shown::kN:
      return {.heading = "n",
              .right_aligned = true,
              .group = place.of_all ? "" : column.level(),
              .rank = kCountOfSeeds};
    case Shown::kPaper:
    case Shown::kDifference:
      break;
  }
  const bool difference = place.shows == Shown::kDifference;
  const std::string what = difference ? "ours − paper" : "paper";
  Grid::Column shown{.heading = heading_of(column), .right_aligned = number, .rank = kPaper};
  if (of_level)
    shown.heading = has_several_of_a_level(table) ? fmt::format("{}, {}", shown.heading, what) : what;
  shown.group = of_level ? column.level() : difference ? what : paper;
  return shown;
}

}  // namespace

Sheet sheet_of(const Table& table, const TableOptions& options) {
  Sheet sheet;
  const std::vector<Shown> shown = shown_of(table, options.shown);
  const RowNames names{table, std::ranges::find(shown, Shown::kValue) != shown.end()};
  const std::vector<SheetPlace> places = places_of(table, shown);
  sheet.columns = names.columns();
  sheet.names = sheet.columns.size();
  for (std::size_t i = 0; i < sheet.names; ++i) sheet.naming.push_back(i);
  for (const SheetPlace& place : places) {
    if (place.shows == Shown::kValue && names.names_rows(place.column))
      sheet.naming.push_back(sheet.columns.size());
    sheet.columns.push_back(column_at(table, names, place));
  }
  sheet.rows.reserve(static_cast<std::size_t>(table.rows_size()));
  for (int index = 0; index < table.rows_size(); ++index) {
    const TableRow& row = table.rows(index);
    Sheet::Row line{.cells = names.cells(index),
                    .baseline = views::is_baseline(table, row),
                    .group = options.flat ? "" : row.group()};
    const auto extend = [named = line.cells.size(), all = sheet.columns.size()](auto& of_cells) {
      of_cells.reserve(all);
      of_cells.resize(named);
    };
    extend(line.cells), extend(line.best), extend(line.second), extend(line.signs), extend(line.marks);
    for (const SheetPlace& place : places) {
      const Cell& cell = place.of_all ? first_with_seeds(table, row) : row.cells(place.column);
      const bool value = place.shows == Shown::kValue, paper = place.shows == Shown::kPaper;
      line.cells.push_back(value                          ? text_of(cell)
                           : place.shows == Shown::kN     ? count_of(cell)
                           : place.shows == Shown::kPaper ? cell.paper()
                                                          : cell.paper_difference());
      line.best.push_back(value && cell.comparison().best());
      line.second.push_back(value && cell.comparison().second());
      line.signs.push_back(value ? sign_of(cell) : "");
      line.marks.push_back(paper ? cell.paper_mark() : "");
    }
    sheet.rows.push_back(std::move(line));
  }
  return sheet;
}

}  // namespace abl::printing
