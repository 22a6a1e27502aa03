// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/nearest_name.h"
#include "cli/svg.h"
#include "cli/tables.h"

namespace abl::cli {
namespace {

using ablate::v1::TuningResponse;
using pictures::at, pictures::Axis, pictures::cut, pictures::kColours, pictures::kDashes, pictures::kFaint,
    pictures::kFont, pictures::kInk, pictures::kMargin, pictures::kRule, pictures::kSmall, pictures::Svg,
    pictures::width_of;

/// The key to draw along the x axis. Throws: Error{kInvalidArgument} naming those that there are.
const ablate::v1::TunedRange& range_named(const TuningResponse& tuning, const std::string& key) {
  std::vector<std::string> numbers;
  for (const auto& range : tuning.ranges()) {
    if (range.has_min() && (key.empty() || range.key() == key)) return range;
    if (range.has_min()) numbers.push_back(range.key());
  }
  if (numbers.empty())
    throw Error{Code::kFailedPrecondition,
                fmt::format("nothing to draw: {} tunes no number", tuning.sweep())};
  throw Error{Code::kInvalidArgument, fmt::format("--x: '{}' is no number that is tuned; expected {}{}", key,
                                                  any_of(numbers), did_you_mean(key, numbers))};
}

struct Dot {
  double x = 0, y = 0;
  bool best = false;
};

/// Numbers along an axis of ratios: 1, 2 and 5 times the powers of ten, or the powers alone where there are
/// many.
std::vector<double> ratio_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low))),
            last = static_cast<int>(std::ceil(std::log10(high)));
  std::vector<double> ticks;
  for (int power = first; power <= last; ++power)
    for (const double part : {1.0, 2.0, 5.0}) {
      if (part > 1 && last - first > 3) continue;
      const double tick = part * std::pow(10, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  return ticks;
}

}  // namespace

std::string tuning_svg(const TuningResponse& tuning, const std::string& key) {
  constexpr double kLeft = 82, kTop = 66, kPlot = 560, kHeight = 380, kLegendLine = 19;
  const auto& range = range_named(tuning, key);
  const auto place = [&](double value) { return range.log() ? std::log10(value) : value; };
  std::vector<std::vector<Dot>> rows;
  double low = std::numeric_limits<double>::infinity(), high = -low, names = 0;
  std::size_t without = 0;
  for (const auto& row : tuning.rows()) {
    std::map<std::uint32_t, const ablate::v1::TuningPoint*> furthest;
    std::set<std::uint32_t> points;
    for (const auto& point : row.points()) {
      points.insert(point.point());
      if (point.has_mean() && std::isfinite(point.mean())) furthest[point.point()] = &point;
    }
    without += points.size() - furthest.size();
    auto& dots = rows.emplace_back();
    for (const auto& [number, point] : furthest) {
      const auto value = point->values().find(range.key());
      if (value == point->values().end()) continue;
      dots.push_back({place(std::strtod(value->second.c_str(), nullptr)), point->mean(), point->best()});
      low = std::min(low, point->mean()), high = std::max(high, point->mean());
    }
    std::ranges::sort(dots, {}, &Dot::x);
    names = std::max(names, width_of(cut(row.label().empty() ? row.row() : row.label())));
  }
  if (!std::isfinite(low))
    throw Error{Code::kFailedPrecondition,
                fmt::format("nothing to draw: no point of {} has a value of {} yet", tuning.sweep(),
                            tuning.metric())};
  Axis across{.low = place(range.min()), .high = place(range.max()), .from = kLeft, .to = kLeft + kPlot};
  Axis up = Axis::around(low, high, 6);
  const double height = std::max(kHeight, static_cast<double>(rows.size()) * kLegendLine + 8);
  up.from = kTop + height, up.to = kTop;
  Svg svg;
  svg.text(kMargin, 26, tuning.sweep(), "start", 16, kInk, true);
  svg.text(
      kMargin, 46,
      fmt::format("{} of each point, as far as it was trained; the chosen ones are large{}", tuning.metric(),
                  without == 0 ? "" : fmt::format("; not drawn: {} without a value", without)),
      "start", kFont, kFaint);
  for (const double tick : up.ticks()) {
    svg.line(across.from, up(tick), across.to, up(tick), kRule);
    svg.text(across.from - 8, up(tick) + 4, up.text(tick), "end", kSmall, kFaint);
  }
  std::vector<double> ticks;
  if (range.log()) {
    ticks = ratio_ticks(range.min(), range.max());
  } else {
    for (const double tick : Axis::around(range.min(), range.max(), 6).ticks())
      if (tick >= range.min() && tick <= range.max()) ticks.push_back(tick);
  }
  for (const double tick : ticks) {
    svg.line(across(place(tick)), up.from, across(place(tick)), up.from + 5, kFaint);
    svg.text(across(place(tick)), up.from + 20, fmt::format("{:.3g}", tick), "middle", kSmall, kFaint);
  }
  svg.line(across.from, up.from, across.to, up.from, kFaint);
  svg.text((across.from + across.to) / 2, up.from + 42, range.key(), "middle", kFont);
  svg.text(22, (up.from + up.to) / 2, tuning.metric(), "middle", kFont, kInk, false,
           fmt::format(" transform=\"rotate(-90 22 {})\"", at((up.from + up.to) / 2)));
  // lines join neighbours only where nothing else varies between them
  const bool joined = tuning.ranges_size() == 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = tuning.rows(static_cast<int>(i));
    const std::string name = row.label().empty() ? row.row() : row.label();
    const char* colour = kColours[i % kColours.size()];
    const char* dash = kDashes[(i / kColours.size()) % kDashes.size()];
    std::string path;
    for (const Dot& dot : rows[i]) path += fmt::format("{},{} ", at(across(dot.x)), at(up(dot.y)));
    if (joined && rows[i].size() > 1) svg.path(path.substr(0, path.size() - 1), colour, dash, name);
    for (const Dot& dot : rows[i])
      svg.dot(across(dot.x), up(dot.y), dot.best ? 6.5 : 3.5, colour,
              fmt::format("{}: {} {:.4g}: {:.4g}{}", name, range.key(),
                          range.log() ? std::pow(10, dot.x) : dot.x, dot.y, dot.best ? ", chosen" : ""));
    if (tuning.search()) continue;
    const double y = kTop + 8 + static_cast<double>(i) * kLegendLine;
    svg.line(across.to + 18, y, across.to + 42, y, colour, 1.8, dash);
    svg.text(across.to + 48, y + 4, cut(name));
  }
  return svg.page(across.to + (tuning.search() ? kMargin : 48 + names + kMargin), up.from + 56,
                  tuning.sweep());
}

}  // namespace abl::cli
