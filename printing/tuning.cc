// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "printing/grid.h"
#include "printing/medium.h"
#include "printing/table.h"
#include "protocol/csv.h"
#include "views/json.h"

namespace abl::printing {
using protocol::csv_field;
using protocol::csv_number;
namespace {

using ablate::v1::TuningPoint;
using ablate::v1::TuningResponse;
using ablate::v1::TuningRow;

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

/// Those that went furthest first, of these the best, those without a value last.
std::vector<const TuningPoint*> in_order(const TuningRow& row, bool higher) {
  std::vector<const TuningPoint*> points;
  for (const auto& point : row.points())
    if (point.rung() == 0 || point.trials().total() > 0 || point.n() > 0) points.push_back(&point);
  std::ranges::stable_sort(points, [&](const TuningPoint* a, const TuningPoint* b) {
    if (a->rung() != b->rung()) return a->rung() > b->rung();
    if (a->has_mean() != b->has_mean()) return a->has_mean();
    return a->has_mean() && (higher ? a->mean() > b->mean() : a->mean() < b->mean());
  });
  return points;
}

std::string value_of(const TuningPoint& point, const std::string& key) {
  const auto found = point.values().find(key);
  return found == point.values().end() ? "" : found->second;
}

/// Headings and cells, the same for a terminal and for Markdown.
struct Lines {
  std::vector<Grid::Column> columns;
  struct Line {
    const TuningRow* row;
    std::vector<std::string> cells;
    bool best = false;
  };
  std::vector<Line> lines;
};

Lines lines_of(const TuningResponse& tuning) {
  Lines all;
  if (!tuning.search()) all.columns.push_back({.heading = "row", .least = 8});
  all.columns.push_back({.heading = "point", .rank = 2});
  for (const auto& range : tuning.ranges())
    all.columns.push_back({.heading = range.key(), .right_aligned = range.has_min(), .least = 6});
  if (!tuning.rung_key().empty())
    all.columns.push_back({.heading = tuning.rung_key(), .right_aligned = true});
  all.columns.push_back({.heading = tuning.metric(), .right_aligned = true});
  all.columns.push_back({.heading = "n", .right_aligned = true, .rank = 1});
  all.columns.push_back({.heading = ""});
  for (const auto& row : tuning.rows()) {
    for (const TuningPoint* point : in_order(row, tuning.better() == "higher")) {
      std::vector<std::string> cells;
      if (!tuning.search()) cells.push_back(row.row());
      cells.push_back(fmt::format("p{}", point->point()));
      for (const auto& range : tuning.ranges()) cells.push_back(value_of(*point, range.key()));
      if (!tuning.rung_key().empty()) cells.push_back(point->rung_value());
      cells.push_back(point->text());
      cells.push_back(point->n() == static_cast<std::uint32_t>(tuning.seeds_size())
                          ? fmt::format("{}", point->n())
                          : fmt::format("{}/{}", point->n(), tuning.seeds_size()));
      cells.push_back(point->best() ? "best" : "");
      all.lines.push_back({.row = &row, .cells = std::move(cells), .best = point->best()});
    }
  }
  return all;
}

/// "a: recipe.lr 0.0031, the best of 8 points: 1.23; better half to 1.31, worst 2.30 (s.d. over seeds 0.02)"
std::vector<std::string> notes_of(const TuningResponse& tuning) {
  std::vector<std::string> notes{tuning.legend()};
  for (const auto& row : tuning.rows()) {
    const std::string name = tuning.search() ? "" : row.row() + ": ";
    std::string note = name + row.note();
    if (const auto& spread = row.spread(); spread.has_best()) {
      note +=
          fmt::format(": {} {}; the better half to {}, the worst {}", tuning.metric(),
                      number_text(spread.best()), number_text(spread.half()), number_text(spread.worst()));
      if (!tuning.rung_key().empty())
        note += fmt::format(", of {} point{} with all {}", spread.points(), spread.points() == 1 ? "" : "s",
                            tuning.rung_key());
      if (spread.has_seeds_sd())
        note += fmt::format("; s.d. of the best over seeds {}", number_text(spread.seeds_sd()));
    }
    notes.push_back(std::move(note));
    for (const auto& warning : row.warnings()) notes.push_back(fmt::format("warning: {}{}", name, warning));
  }
  return notes;
}

std::string text(const TuningResponse& tuning, const Medium* medium) {
  const Lines all = lines_of(tuning);
  Grid grid{all.columns};
  const TuningRow* before = nullptr;
  for (const auto& line : all.lines) {
    if (before && before != line.row) grid.add_heading("");
    before = line.row;
    grid.add(line.cells);
  }
  grid.fit_to(medium ? medium->width() : 0);
  std::string text = grid.text(medium) + "\n";
  for (const auto& note : notes_of(tuning)) text += note + "\n";
  return text;
}

std::string markdown(const TuningResponse& tuning) {
  const auto escape = [](const std::string& text) {
    std::string result;
    for (const char c : text) result += c == '|' ? std::string{"\\|"} : std::string{c};
    return result;
  };
  const Lines all = lines_of(tuning);
  std::string text = "|", rule = "|";
  for (const auto& column : all.columns) {
    text += fmt::format(" {} |", escape(column.heading));
    rule += column.right_aligned ? " ---: |" : " --- |";
  }
  text += "\n" + rule + "\n";
  for (const auto& line : all.lines) {
    text += "|";
    for (const auto& cell : line.cells)
      text += line.best && !cell.empty() ? fmt::format(" **{}** |", escape(cell))
                                         : fmt::format(" {} |", escape(cell));
    text += "\n";
  }
  text += "\n";
  for (const auto& note : notes_of(tuning)) text += fmt::format("- {}\n", note);
  return text;
}

std::string csv(const TuningResponse& tuning) {
  std::string text = "row,point,rung";
  for (const auto& range : tuning.ranges()) text += "," + csv_field(range.key());
  if (!tuning.rung_key().empty()) text += "," + csv_field(tuning.rung_key());
  for (const char* ending : {"", "_sd", "_n"}) text += "," + csv_field(tuning.metric() + ending);
  text += ",best";
  for (const auto seed : tuning.seeds()) text += fmt::format(",seed_{}", seed);
  text += "\n";
  for (const auto& row : tuning.rows()) {
    for (const TuningPoint* point : in_order(row, tuning.better() == "higher")) {
      text += fmt::format("{},p{},{}", csv_field(row.row()), point->point(), point->rung());
      for (const auto& range : tuning.ranges()) text += "," + csv_field(value_of(*point, range.key()));
      if (!tuning.rung_key().empty()) text += "," + csv_field(point->rung_value());
      text += fmt::format(",{},{},{},{}", point->has_mean() ? csv_number(point->mean()) : "",
                          point->has_sd() ? csv_number(point->sd()) : "", point->n(), point->best() ? 1 : 0);
      for (const auto& value : point->values_by_seed())
        text += value.has_value() ? "," + csv_number(value.value()) : ",";
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::string tuning_text(const TuningResponse& tuning, TableFormat format, const Medium* medium) {
  switch (format) {
    case TableFormat::kMarkdown:
      return markdown(tuning);
    case TableFormat::kCsv:
      return csv(tuning);
    case TableFormat::kJson:
      return views::to_json(tuning) + "\n";
    default:
      return text(tuning, medium);
  }
}

}  // namespace abl::printing
