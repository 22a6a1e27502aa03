// SPDX-License-Identifier: Apache-2.0
#include "printing/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "printing/sheet.h"

namespace abl::printing {

using ablate::v1::Cell;
using ablate::v1::Table;

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
  return fmt::format("{}{}{}{}: {}", directed ? "↑ better, ↓ worse" : "", directed && different ? ", " : "",
                     different ? "≠ other" : "",
                     directed || different ? " than the baseline" : "no row differs from its baseline",
                     table.compare().legend());
}

Gaps gaps_of(const Table& table) {
  struct Gap {
    std::string why;
    std::vector<std::string> rows, columns;
  };
  Gaps all;
  std::vector<Gap> gaps;
  std::unordered_map<std::string, std::vector<std::size_t>> places;  // among these, by their reasons
  for (int column = 0; column < table.columns_size(); ++column) {
    std::vector<Gap> here;
    std::unordered_map<std::string, std::size_t> places_here;
    for (const auto& row : table.rows()) {
      const Cell& cell = row.cells(column);
      if (cell.missing().empty() || (cell.n() > 0 && cell.unfilled() == 0)) continue;
      if (!row.not_trained().empty()) continue;  // a note of the table says so
      if (is_metric(table.columns(column)) && cell.of() > 0) ++all.cells;
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
  for (const Gap& gap : gaps)
    all.lines.push_back(fmt::format("{}: {} (row{} {})", fmt::join(gap.columns, ", "), gap.why,
                                    gap.rows.size() == 1 ? "" : "s", fmt::join(gap.rows, ", ")));
  return all;
}

}  // namespace abl::printing
