// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "printing/grid.h"
#include "printing/medium.h"
#include "printing/row_names.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "views/comparison.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::CellStatistics;
using ablate::v1::Column;
using ablate::v1::Table;

constexpr const char* kNothing = "–";

std::string p_text(double p) { return p < 1e-4 ? "<0.0001" : fmt::format("{:.{}f}", p, p < 0.1 ? 4 : 2); }

/// "79.48 to 80.10", by `text` of its ends; a dash where there is none.
template <class Text>
std::string interval_text(bool known, const ablate::v1::Interval& interval, const Text& text) {
  return known ? fmt::format("{} to {}", text(interval.low()), text(interval.high())) : kNothing;
}

// what goes first where there is no room
enum StatisticsRank { kPower = 1, kEffect, kError, kMeanInterval, kUncorrected, kDeviation };

Grid cells_grid(const Table& table, int index, const RowNames& names, const Medium* medium,
                std::vector<std::string>& left_out) {
  const Column& column = table.columns(index);
  std::vector<Grid::Column> heads = names.short_columns();
  heads.insert(heads.end(), {{.heading = "n", .right_aligned = true},
                             {.heading = "mean", .right_aligned = true},
                             {.heading = "s.d.", .right_aligned = true, .rank = kDeviation},
                             {.heading = "s.e.", .right_aligned = true, .rank = kError},
                             {.heading = "95 % interval", .right_aligned = true, .rank = kMeanInterval},
                             {.heading = "difference", .right_aligned = true},
                             {.heading = "its 95 % interval", .right_aligned = true},
                             {.heading = "p", .right_aligned = true, .rank = kUncorrected},
                             {.heading = "corrected", .right_aligned = true},
                             {.heading = "g", .right_aligned = true, .rank = kEffect},
                             {.heading = "its 95 % interval", .right_aligned = true, .rank = kEffect},
                             {.heading = "more seeds", .right_aligned = true, .rank = kPower}});
  Grid grid{heads};
  for (const auto& row : table.rows()) {
    const Cell& cell = row.cells(index);
    if (!cell.has_statistics()) continue;
    const CellStatistics& said = cell.statistics();
    const auto value = [&](double number) { return views::value_text(column, cell, number); };
    const auto end = [&](double number) { return views::bound_text(column, cell, number); };
    const auto effect = [](double number) { return fmt::format("{:.2f}", number); };
    std::vector<std::string> line = names.short_cells(row.id());
    line.insert(
        line.end(),
        {fmt::format("{}", cell.n()), cell.has_mean() ? value(cell.mean()) : kNothing,
         said.has_standard_error() ? value(cell.sd()) : kNothing,
         said.has_standard_error() ? value(said.standard_error()) : kNothing,
         interval_text(said.has_interval(), said.interval(), value),
         said.has_difference() ? views::difference_text(column, cell, said.difference()) : kNothing,
         interval_text(said.has_difference_interval(), said.difference_interval(), end),
         cell.has_p() ? p_text(cell.p()) : kNothing, cell.has_p() ? p_text(cell.p_corrected()) : kNothing,
         said.has_g() ? effect(said.g()) : kNothing,
         interval_text(said.has_g_interval(), said.g_interval(), effect),
         said.has_more_seeds() ? fmt::format("{} to see {}", said.more_seeds(), value(said.to_see()))
                               : kNothing});
    grid.add(std::move(line));
  }
  for (const auto& gone : grid.fit_to(medium ? medium->width() : 0)) left_out.push_back(gone.heading);
  return grid;
}

/// Why rows have no interval or no test, a line for each reason.
std::string gaps(const Table& table, int index) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  const auto add = [&](const std::string& why, const std::string& row) {
    if (why.empty()) return;
    auto place = std::ranges::find(reasons, why, [](const auto& known) { return known.first; });
    if (place == reasons.end()) place = reasons.insert(place, {why, {}});
    if (std::ranges::find(place->second, row) == place->second.end()) place->second.push_back(row);
  };
  for (const auto& row : table.rows()) {
    const CellStatistics& said = row.cells(index).statistics();
    add(said.why_no_interval().empty() ? "" : "no interval: " + said.why_no_interval(), row.id());
    add(said.why_no_test().empty() ? "" : "no test: " + said.why_no_test(), row.id());
    if (said.unpaired_size() > 0)
      add(fmt::format("left out of the pairs: seed{} {}", said.unpaired_size() == 1 ? "" : "s",
                      fmt::join(said.unpaired(), ", ")),
          row.id());
  }
  std::string text;
  for (const auto& [why, rows] : reasons)
    text += fmt::format("{} (row{} {})\n", why, rows.size() == 1 ? "" : "s", fmt::join(rows, ", "));
  return text;
}

std::string agreement_text(const ablate::v1::PaperAgreement& said) {
  std::string text = fmt::format("agreement with the paper, {} rows: ", said.rows());
  const auto number = [](double value) { return fmt::format("{:.2f}", value); };
  text += said.has_tau() ? fmt::format("Kendall's tau-b {}", number(said.tau())) : "no rank correlation";
  if (said.has_tau_interval())
    text += ", 95 % interval " + interval_text(true, said.tau_interval(), number);
  else if (!said.why().empty())
    text += fmt::format(" ({})", said.why());
  if (said.signs() > 0) {
    const auto percent = [](double share) { return fmt::format("{:.0f} %", 100 * share); };
    text += fmt::format("; {} of {} differences to the baseline have the paper's sign (95 % interval {})",
                        said.same_signs(), said.signs(),
                        interval_text(said.has_same_share_interval(), said.same_share_interval(), percent));
  }
  return text + "\n";
}

/// Without a sign before what rounds to 0.
std::string share_text(double share) { return fmt::format("{:.3f}", std::abs(share) < 0.0005 ? 0 : share); }

std::string analysis_text(const ablate::v1::FactorAnalysis& said, const Medium* medium) {
  std::string text = "analysis of variance (Type II), the factors by what they explain\n";
  if (said.effects().empty()) return text + "  none: " + said.why() + "\n";
  Grid grid{{{.heading = "factor", .least = 10},
             {.heading = "df", .right_aligned = true},
             {.heading = "sum of squares", .right_aligned = true, .rank = 3},
             {.heading = "F", .right_aligned = true, .rank = 2},
             {.heading = "p", .right_aligned = true},
             {.heading = "eta²", .right_aligned = true},
             {.heading = "partial eta²", .right_aligned = true, .rank = 4},
             {.heading = "omega²", .right_aligned = true, .rank = 1}}};
  std::vector<const ablate::v1::FactorEffect*> effects;
  for (const auto& effect : said.effects()) effects.push_back(&effect);
  std::ranges::stable_sort(effects, std::greater{}, [](const auto* effect) { return effect->eta_squared(); });
  for (const auto* effect : effects)
    grid.add({fmt::format("{}", fmt::join(effect->factors(), " × ")), fmt::format("{}", effect->df()),
              fmt::format("{:.4g}", effect->sum_of_squares()),
              effect->has_f() ? fmt::format("{:.2f}", effect->f()) : kNothing,
              effect->has_p() ? p_text(effect->p()) : kNothing, fmt::format("{:.3f}", effect->eta_squared()),
              fmt::format("{:.3f}", effect->partial_eta_squared()),
              effect->has_omega_squared() ? share_text(effect->omega_squared()) : kNothing});
  grid.add({"residual", fmt::format("{}", said.residual_df()), fmt::format("{:.4g}", said.residual()), "", "",
            "", "", ""});
  grid.fit_to(medium ? medium->width() : 0);
  return text + grid.text(medium) + (said.why().empty() ? "" : said.why() + "\n");
}

}  // namespace

std::string statistics_text(const Table& table, const Medium* medium) {
  const RowNames names{table};
  std::string text;
  for (int index = 0; index < table.columns_size(); ++index) {
    const Column& column = table.columns(index);
    if (!is_metric(column)) continue;
    std::vector<std::string> left_out;
    const Grid grid = cells_grid(table, index, names, medium, left_out);
    if (grid.empty()) continue;
    text += fmt::format("\n{}\n{}", heading_of(column), grid.text(medium)) + gaps(table, index);
    if (!left_out.empty())
      text += fmt::format("no room for: {} (a wider terminal, or --format csv, has them)\n",
                          fmt::join(left_out, ", "));
    for (const auto& said : table.paper_agreement())
      if (said.column() == column.name()) text += agreement_text(said);
    for (const auto& said : table.factor_analyses())
      if (said.column() == column.name()) text += analysis_text(said, medium);
  }
  if (text.empty()) return text;
  return text + fmt::format("\n{}; intervals by {}, {}\n", table.compare().legend(),
                            table.compare().interval() == "bootstrap" ? "BCa bootstrap" : "Student's t",
                            table.has_sequential() ? "for all looks" : "not corrected");
}

}  // namespace abl::printing
