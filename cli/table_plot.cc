// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cli/format.h"
#include "cli/svg.h"
#include "cli/tables.h"
#include "cli/terminal.h"
#include "printing/sheet.h"
#include "storage/table.h"
#include "views/comparison.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using ablate::v1::TableRow;
using pictures::at, pictures::Axis, pictures::cut, pictures::kBaseline, pictures::kColours, pictures::kDashes,
    pictures::kFaint, pictures::kFont, pictures::kInk, pictures::kMargin, pictures::kRowHeight,
    pictures::kRule, pictures::kSmall, pictures::Svg, pictures::width_of;
using printing::heading_of;
using printing::is_metric;
using printing::unit_of;

/// A row as it is drawn: its value in the column's unit, and the interval of its mean.
struct DrawnRow {
  std::string id, name, text;
  std::optional<double> value, low, high;
  bool baseline = false;
  std::string group;
};

std::string title_of(const Table& table) { return table.title().empty() ? table.sweep() : table.title(); }

/// Factors' rows are called by their levels, and the others by label, with the id in front where labels
/// repeat.
std::vector<std::string> names_of_rows(const Table& table) {
  std::map<std::string, int> labels;
  for (const TableRow& row : table.rows()) ++labels[row.label()];
  std::vector<std::string> names;
  for (const TableRow& row : table.rows())
    names.push_back(row.label().empty()       ? row.id()
                    : labels[row.label()] > 1 ? fmt::format("{}: {}", row.id(), row.label())
                                              : row.label());
  return names;
}

std::vector<DrawnRow> marks_of(const Table& table, int column) {
  const double unit = storage::unit_factor(unit_of(table.columns(column)));
  const std::vector<std::string> names = names_of_rows(table);
  std::vector<DrawnRow> marks;
  for (int i = 0; i < table.rows_size(); ++i) {
    const TableRow& row = table.rows(i);
    const Cell& cell = row.cells(column);
    DrawnRow mark{.id = row.id(),
                  .name = names[static_cast<std::size_t>(i)],
                  .text = cell.text(),
                  .group = row.group()};
    mark.baseline = views::is_baseline(table, row);
    if (cell.has_mean() && std::isfinite(cell.mean())) mark.value = cell.mean() / unit;
    if (mark.value && cell.statistics().has_interval()) {
      mark.low = cell.statistics().interval().low() / unit;
      mark.high = cell.statistics().interval().high() / unit;
    }
    if (!mark.value && !cell.missing().empty()) mark.text = cell.missing();
    marks.push_back(std::move(mark));
  }
  return marks;
}

void expect_values(const Table& table, int column, bool any) {
  if (!any)
    throw Error{Code::kFailedPrecondition, fmt::format("nothing to draw: {} of {} has no value yet",
                                                       heading_of(table.columns(column)), table.sweep())};
}

/// "mean of 3 seeds, 95 % interval"
std::string what_is_drawn(const Table& table, int column) {
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max(), most = 0;
  bool interval = false;
  for (const TableRow& row : table.rows()) {
    const Cell& cell = row.cells(column);
    if (cell.n() == 0) continue;
    least = std::min(least, cell.n()), most = std::max(most, cell.n());
    interval |= cell.statistics().has_interval();
  }
  if (!is_metric(table.columns(column))) return heading_of(table.columns(column));
  return fmt::format("{}: mean of {}{}", heading_of(table.columns(column)),
                     least == most ? plural(most, "seed") : fmt::format("{} to {} seeds", least, most),
                     interval ? ", with 95 % interval" : "");
}

/// Why a row is not drawn, after its id where that is another reason than that its time has not come.
std::string lacking_text(const TableRow& row, int column) {
  const Cell& cell = row.cells(column);
  return cell.diverged_size() > 0 ? fmt::format("{} ({})", row.id(), cell.missing()) : row.id();
}

/// What could not be drawn, and why, below the picture.
double add_named(Svg& svg, std::string_view why, const std::vector<std::string>& rows, double y) {
  constexpr std::size_t kNamed = 8;
  if (rows.empty()) return y;
  const std::size_t named = std::min(rows.size(), kNamed);
  std::string text = fmt::format(
      "{}: {}", why, fmt::join(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(named), ", "));
  if (named < rows.size()) text += fmt::format(" and {} more", rows.size() - named);
  svg.text(kMargin, y + 14, text, "start", kSmall, kFaint);
  return y + 20;
}

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  bool meets(const Box& other) const {
    return x < other.x + other.width && other.x < x + width && y < other.y + other.height &&
           other.y < y + height;
  }
};

}  // namespace

std::string bars_svg(const Table& table, int y) {
  const std::vector<DrawnRow> marks = marks_of(table, y);
  double least = std::numeric_limits<double>::infinity(), most = -least, names = 0;
  std::size_t lines = 0;
  std::string group;
  for (const DrawnRow& mark : marks) {
    names = std::max(names, width_of(cut(mark.name)));
    lines += 1 + (mark.group != group && !mark.group.empty());
    group = mark.group;
    if (!mark.value) continue;
    least = std::min({least, *mark.value, mark.low.value_or(*mark.value)});
    most = std::max({most, *mark.value, mark.high.value_or(*mark.value)});
  }
  expect_values(table, y, std::isfinite(least));
  const bool from_zero = least <= 0 || most - least > 0.3 * most;
  Axis axis = from_zero ? Axis::around(std::min(0.0, least), std::max(0.0, most), 6)
                        : Axis::around(least - 0.05 * (most - least), most + 0.05 * (most - least), 6);
  const double left = kMargin + names + 14, top = 66, plot = 520;
  double values = 0;
  for (const DrawnRow& mark : marks)
    if (mark.value) values = std::max(values, width_of(mark.text));
  axis.from = left, axis.to = left + plot;
  const double bottom = top + static_cast<double>(lines) * kRowHeight + 6;
  Svg svg;
  svg.text(kMargin, 26, title_of(table), "start", 16, kInk, true);
  svg.text(kMargin, 46, what_is_drawn(table, y), "start", kFont, kFaint);
  for (const double tick : axis.ticks()) {
    svg.line(axis(tick), top, axis(tick), bottom, kRule);
    svg.text(axis(tick), bottom + 16, axis.text(tick), "middle", kSmall, kFaint);
  }
  const auto baseline =
      std::ranges::find_if(marks, [](const DrawnRow& mark) { return mark.baseline && mark.value; });
  const bool one_baseline = std::ranges::count_if(marks, &DrawnRow::baseline) == 1 && baseline != marks.end();
  if (one_baseline) svg.line(axis(*baseline->value), top, axis(*baseline->value), bottom, kFaint, 1, "4 3");
  double place = top + 3;
  group.clear();
  for (const DrawnRow& mark : marks) {
    if (mark.group != group) {
      group = mark.group;
      if (!group.empty()) {
        svg.text(kMargin, place + 16, cut(group), "start", kSmall, kFaint, true);
        place += kRowHeight;
      }
    }
    const double middle = place + kRowHeight / 2;
    svg.text(left - 8, middle + 4, cut(mark.name), "end", kSmall, kInk, mark.baseline);
    const char* colour = mark.baseline ? kBaseline : kColours[0];
    if (!mark.value) {
      svg.text(left + 6, middle + 4, cut(mark.text), "start", kSmall, kFaint);
    } else {
      const std::string said = fmt::format("{}: {}", mark.name, mark.text);
      if (from_zero) {
        const double zero = axis(0), end = axis(*mark.value);
        svg.rectangle(std::min(zero, end), place + 4, std::abs(end - zero), kRowHeight - 8,
                      mark.baseline ? "#8c8c8c" : "#7fb8d8", said);
      }
      if (mark.low) {
        svg.line(axis(*mark.low), middle, axis(*mark.high), middle, from_zero ? kInk : colour, 1.6);
        for (const double end : {*mark.low, *mark.high})
          svg.line(axis(end), middle - 4, axis(end), middle + 4, from_zero ? kInk : colour, 1.6);
      }
      if (!from_zero) svg.dot(axis(*mark.value), middle, 4.5, colour, said);
      svg.text(axis.to + 12, middle + 4, mark.text, "start", kSmall, kInk, mark.baseline);
    }
    place += kRowHeight;
  }
  svg.line(axis.from, bottom, axis.to, bottom, kFaint);
  svg.text((axis.from + axis.to) / 2, bottom + 36, heading_of(table.columns(y)), "middle", kFont);
  if (one_baseline) svg.text(axis(*baseline->value), top - 5, "baseline", "middle", kSmall, kFaint);
  return svg.page(axis.to + 12 + values + kMargin, bottom + 50, title_of(table));
}

std::string scatter_svg(const Table& table, int y, int x) {
  const std::vector<DrawnRow> ys = marks_of(table, y), xs = marks_of(table, x);
  struct Dot {
    const DrawnRow *x, *y;
  };
  std::vector<Dot> dots;
  std::vector<std::string> lacking;
  double left = std::numeric_limits<double>::infinity(), right = -left, low = left, high = -left;
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!ys[i].value || !xs[i].value) {
      const TableRow& row = table.rows(static_cast<int>(i));
      lacking.push_back(lacking_text(row, ys[i].value ? x : y));
      continue;
    }
    dots.push_back({&xs[i], &ys[i]});
    left = std::min(left, *xs[i].value), right = std::max(right, *xs[i].value);
    low = std::min({low, *ys[i].value, ys[i].low.value_or(*ys[i].value)});
    high = std::max({high, *ys[i].value, ys[i].high.value_or(*ys[i].value)});
  }
  expect_values(table, y, !dots.empty());
  Axis across = Axis::around(left, right, 6), up = Axis::around(low, high, 6);
  constexpr double kWidth = 860, kTop = 66, kHeight = 520, kLeft = 82;
  across.from = kLeft, across.to = kWidth - 40;
  up.from = kTop + kHeight, up.to = kTop;
  Svg svg;
  svg.text(kMargin, 26, title_of(table), "start", 16, kInk, true);
  svg.text(kMargin, 46, fmt::format("{}, against {}", what_is_drawn(table, y), heading_of(table.columns(x))),
           "start", kFont, kFaint);
  for (const double tick : up.ticks()) {
    svg.line(across.from, up(tick), across.to, up(tick), kRule);
    svg.text(across.from - 8, up(tick) + 4, up.text(tick), "end", kSmall, kFaint);
  }
  for (const double tick : across.ticks()) {
    svg.line(across(tick), up.from, across(tick), up.from + 5, kFaint);
    svg.text(across(tick), up.from + 20, across.text(tick), "middle", kSmall, kFaint);
  }
  svg.line(across.from, up.from, across.to, up.from, kFaint);
  svg.text((across.from + across.to) / 2, up.from + 42, heading_of(table.columns(x)), "middle", kFont);
  svg.text(22, (up.from + up.to) / 2, heading_of(table.columns(y)), "middle", kFont, kInk, false,
           fmt::format(" transform=\"rotate(-90 22 {})\"", at((up.from + up.to) / 2)));
  std::vector<Box> taken;
  for (const Dot& dot : dots) {
    const double px = across(*dot.x->value), py = up(*dot.y->value);
    taken.push_back({px - 6, py - 6, 12, 12});
    if (dot.y->low) taken.push_back({px - 2, up(*dot.y->high), 4, up(*dot.y->low) - up(*dot.y->high)});
  }
  for (const Dot& dot : dots)  // below all dots
    if (const double px = across(*dot.x->value); dot.y->low)
      svg.line(px, up(*dot.y->low), px, up(*dot.y->high), dot.y->baseline ? "#8c8c8c" : "#9cc4e0", 2);
  for (const Dot& dot : dots) {
    const double px = across(*dot.x->value), py = up(*dot.y->value);
    const char* colour = dot.y->baseline ? kBaseline : kColours[0];
    svg.dot(px, py, 5, colour, fmt::format("{}: {}, {}", dot.y->name, dot.y->text, dot.x->text));
  }
  for (const Dot& dot : dots) {  // names, nearest first, where nothing stands yet
    const double px = across(*dot.x->value), py = up(*dot.y->value);
    const std::string& name = display_width(dot.y->name) <= 24 ? dot.y->name : dot.y->id;
    const double width = width_of(name), height = kSmall + 3;
    Box best{px + 9, py - height / 2, width, height};
    double best_distance = 0;
    bool placed = false;
    for (double distance = 9; distance < 130 && !placed; distance += 6) {
      for (int direction = 0; direction < 12 && !placed; ++direction) {
        static constexpr std::array kOrder{0, 6, 1, 11, 5, 7, 2, 10, 4, 8, 3, 9};
        const double angle = kOrder[static_cast<std::size_t>(direction)] * 3.14159265358979 / 6;
        const double cx = px + std::cos(angle) * distance, cy = py - std::sin(angle) * distance;
        Box box{cx, cy - height / 2, width, height};
        if (std::cos(angle) < -0.1) box.x = cx - width;
        if (std::abs(std::cos(angle)) <= 0.1) box.x = cx - width / 2;
        const bool inside = box.x >= across.from + 2 && box.x + width <= kWidth - 4 && box.y >= up.to - 12 &&
                            box.y + height <= up.from - 2;
        if (!inside || std::ranges::any_of(taken, [&](const Box& other) { return other.meets(box); }))
          continue;
        best = box, best_distance = distance, placed = true;
      }
    }
    taken.push_back(best);
    if (best_distance > 15)
      svg.line(px, py, std::clamp(px, best.x, best.x + width), std::clamp(py, best.y, best.y + height),
               kFaint, 0.6);
    svg.text(best.x, best.y + height - 4, name, "start", kSmall, kInk, dot.y->baseline);
  }
  const double end = add_named(svg, "no value", lacking, up.from + 50);
  return svg.page(kWidth, end + 14, title_of(table));
}

std::string curves_svg(const Table& table, const std::string& metric, const std::vector<Curve>& curves) {
  constexpr std::size_t kMostPoints = 400;
  struct Drawn {
    const Curve* of;
    std::vector<std::array<double, 4>> points;  // step, mean, low, high
  };
  std::vector<Drawn> lines;
  std::vector<std::string> lacking, ended;
  double first = std::numeric_limits<double>::infinity(), last = -first, low = first, high = -first,
         names = 0;
  std::size_t most_seeds = 0;
  for (const Curve& curve : curves) {
    Drawn drawn{.of = &curve, .points = {}};
    const std::size_t every = (curve.points.size() + kMostPoints - 1) / kMostPoints;
    std::size_t index = 0;
    for (const auto& [step, values] : curve.points) {
      if (curve.diverged_at && step >= *curve.diverged_at) break;
      if (curve.gaps.contains(step)) continue;
      const bool is_last = ++index == curve.points.size();
      if (values.empty() || (every > 1 && (index - 1) % every != 0 && !is_last)) continue;
      double mean = 0, spread = 0;
      for (const double value : values) mean += value / static_cast<double>(values.size());
      for (const double value : values) spread += (value - mean) * (value - mean);
      spread = values.size() > 1 ? std::sqrt(spread / static_cast<double>(values.size() - 1)) : 0;
      drawn.points.push_back({static_cast<double>(step), mean, mean - spread, mean + spread});
      most_seeds = std::max(most_seeds, values.size());
      first = std::min(first, static_cast<double>(step)), last = std::max(last, static_cast<double>(step));
      low = std::min(low, mean - spread), high = std::max(high, mean + spread);
    }
    if (curve.diverged_at) ended.push_back(fmt::format("{} at step {}", curve.row, *curve.diverged_at));
    if (drawn.points.empty()) {
      if (!curve.diverged_at) lacking.push_back(curve.row);
      continue;
    }
    names = std::max(names, width_of(cut(curve.label)));
    lines.push_back(std::move(drawn));
  }
  if (lines.empty())
    throw Error{Code::kFailedPrecondition,
                fmt::format("nothing to draw: no run of {} has said {}", table.sweep(), metric)};
  constexpr double kLeft = 82, kTop = 66, kPlot = 640, kLegendLine = 19;
  const double height = std::max(400.0, static_cast<double>(lines.size()) * kLegendLine + 8);
  Axis across = Axis::around(std::min(0.0, first), last, 6), up = Axis::around(low, high, 6);
  across.high = std::max(last, across.low + across.step);  // lines reach the end
  across.from = kLeft, across.to = kLeft + kPlot;
  up.from = kTop + height, up.to = kTop;
  Svg svg;
  svg.text(kMargin, 26, title_of(table), "start", 16, kInk, true);
  svg.text(
      kMargin, 46,
      fmt::format("{}: {}", metric,
                  most_seeds > 1 ? fmt::format("mean of up to {}, in a band of ± their standard deviation",
                                               plural(most_seeds, "seed"))
                                 : "one seed"),
      "start", kFont, kFaint);
  for (const double tick : up.ticks()) {
    svg.line(across.from, up(tick), across.to, up(tick), kRule);
    svg.text(across.from - 8, up(tick) + 4, up.text(tick), "end", kSmall, kFaint);
  }
  for (double tick = across.low; tick <= across.high * (1 + 1e-9); tick += across.step) {
    svg.line(across(tick), up.from, across(tick), up.from + 5, kFaint);
    svg.text(across(tick), up.from + 20, across.text(tick), "middle", kSmall, kFaint);
  }
  svg.line(across.from, up.from, across.to, up.from, kFaint);
  svg.text((across.from + across.to) / 2, up.from + 42, "step", "middle", kFont);
  svg.text(22, (up.from + up.to) / 2, metric, "middle", kFont, kInk, false,
           fmt::format(" transform=\"rotate(-90 22 {})\"", at((up.from + up.to) / 2)));
  const auto look = [&](std::size_t i) {
    if (lines[i].of->baseline) return std::pair{kBaseline, kDashes[0]};
    std::size_t place = 0;  // among those that are no baseline
    for (std::size_t before = 0; before < i; ++before) place += !lines[before].of->baseline;
    return std::pair{kColours[place % kColours.size()], kDashes[(place / kColours.size()) % kDashes.size()]};
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string upper, lower;
    bool banded = false;
    for (const auto& [step, mean, least, most] : lines[i].points) {
      upper += fmt::format("{},{} ", at(across(step)), at(up(most)));
      lower = fmt::format("{},{} ", at(across(step)), at(up(least))) + lower;
      banded |= most > least;
    }
    if (banded && lines[i].points.size() > 1)
      svg.area(upper + lower.substr(0, lower.size() - 1), look(i).first);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto [colour, dash] = look(i);
    const std::string said =
        fmt::format("{}: {} at step {}", lines[i].of->label, fmt::format("{:.4g}", lines[i].points.back()[1]),
                    lines[i].points.back()[0]);
    if (lines[i].points.size() == 1) {
      svg.dot(across(lines[i].points[0][0]), up(lines[i].points[0][1]), 4, colour, said);
    } else {
      std::string path;
      for (const auto& point : lines[i].points)
        path += fmt::format("{},{} ", at(across(point[0])), at(up(point[1])));
      path.pop_back();
      svg.path(path, colour, dash, said);
    }
    const double place = kTop + 10 + static_cast<double>(i) * kLegendLine;
    svg.line(across.to + 18, place, across.to + 46, place, colour, 2.2, dash);
    svg.text(across.to + 53, place + 4, cut(lines[i].of->label), "start", kSmall, kInk,
             lines[i].of->baseline);
  }
  const double end = add_named(svg, "a seed diverged, the mean ends", ended,
                               add_named(svg, "no value", lacking, up.from + 50));
  return svg.page(across.to + 53 + names + kMargin, end + 14, title_of(table));
}

}  // namespace abl::cli
