// SPDX-License-Identifier: Apache-2.0
#include "cli/tables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "base/file.h"
#include "tests/error_of.h"
#include "tests/printing/tables.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using printing::sample_tuning;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Twenty rows that stand close together, with intervals, one that has no value and one with a hostile name.
Table crowd() {
  Table table;
  table.set_sweep("crowd");
  table.set_baseline("r0");
  for (const char* name : {"acc", "params"}) {
    Column& column = *table.add_columns();
    column.set_name(name);
    column.set_kind(std::string_view{name} == "acc" ? Column::KIND_METRIC : Column::KIND_COUNT);
    column.set_unit(std::string_view{name} == "acc" ? "%" : "M");
  }
  for (int i = 0; i < 20; ++i) {
    auto& row = *table.add_rows();
    row.set_id(fmt::format("r{}", i));
    row.set_label(i == 3 ? "<evil> & \"co\""
                         : fmt::format("MSF, {}-matrices {}", i % 5, static_cast<char>('a' + i)));
    Cell& acc = *row.add_cells();
    Cell& params = *row.add_cells();
    params.set_mean(16.6e6 + (i / 4) * 1.77e6);
    params.set_text("16.60");
    if (i == 7) {
      acc.set_text("–");
      acc.set_missing("no completed trial yet: 0 running, 3 waiting");
      continue;
    }
    acc.set_mean(77 + 0.15 * i);
    acc.set_n(3);
    acc.set_text(fmt::format("{:.2f} ± 0.20", 77 + 0.15 * i));
    auto& interval = *acc.mutable_statistics()->mutable_interval();
    interval.set_low(acc.mean() - 0.4);
    interval.set_high(acc.mean() + 0.4);
  }
  return table;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++found;
  return found;
}

/// For whoever wants to look at them.
void keep(const std::string& name, const std::string& svg) {
  if (const char* folder = std::getenv("ABLATE_KEEP_PICTURES"))
    write_file(std::string{folder} + "/" + name, svg);
}

TEST(TablePlot, BarsHaveARowEachTheirIntervalsAndWhyOneIsEmpty) {
  const std::string svg = bars_svg(crowd(), 0);
  keep("bars.svg", svg);
  EXPECT_EQ(svg, bars_svg(crowd(), 0));
  EXPECT_EQ(count(svg, "<circle"), 19u) << "differences of a hundredth of the value: dots, not bars";
  EXPECT_THAT(svg, HasSubstr("&lt;evil&gt; &amp; &quot;co&quot;"));
  EXPECT_THAT(svg, HasSubstr("no completed trial yet"));
  EXPECT_THAT(svg, HasSubstr(">baseline<"));
  Table low = crowd();
  for (auto& row : *low.mutable_rows()) {
    if (row.id() == "r5") row.mutable_cells(0)->set_mean(20);
    row.mutable_cells(0)->clear_statistics();
  }
  const std::string bars = bars_svg(low, 0);
  keep("bars_from_zero.svg", bars);
  EXPECT_EQ(count(bars, "<rect x"), 19u);
  EXPECT_THAT(bars, HasSubstr(">0<")) << "bars begin at zero";
}

TEST(TablePlot, NamesOfTwentyDotsDoNotMeet) {
  const std::string svg = scatter_svg(crowd(), 0, 1);
  keep("scatter.svg", svg);
  EXPECT_EQ(count(svg, "<circle"), 19u);
  EXPECT_THAT(svg, HasSubstr("no value: r7"));
  // each name's place, by its text element
  std::vector<std::pair<double, double>> places;
  for (std::size_t at = 0; (at = svg.find("font-size=\"12\" fill=\"#1a1a1a\"", at)) != std::string::npos;
       ++at) {
    const std::size_t begin = svg.rfind("<text x=\"", at) + 9;
    const double x = std::atof(svg.c_str() + begin), y = std::atof(svg.c_str() + svg.find("y=\"", begin) + 3);
    for (const auto& [other_x, other_y] : places)
      EXPECT_TRUE(std::abs(other_y - y) >= 14 || std::abs(other_x - x) >= 40);
    places.emplace_back(x, y);
  }
  EXPECT_EQ(places.size(), 19u);
}

TEST(TablePlot, CurvesHaveABandAndALegendLineEach) {
  std::vector<Curve> curves;
  for (int row = 0; row < 20; ++row) {
    Curve curve{.row = fmt::format("r{}", row),
                .label = fmt::format("MSF, variant {}", row),
                .baseline = row == 0,
                .points = {}};
    for (std::uint32_t step = 100; step <= 5000 && row != 4; step += 100)
      for (int seed = 0; seed < 3; ++seed)
        curve.points[step].push_back(60 + row * 0.7 - 40.0 * std::exp(-static_cast<double>(step) / 1200) +
                                     seed * 0.4);
    curves.push_back(curve);
  }
  const std::string svg = curves_svg(crowd(), "val/top1", curves);
  keep("curves.svg", svg);
  EXPECT_EQ(count(svg, "<polyline"), 19u);
  EXPECT_EQ(count(svg, "<polygon"), 19u);
  EXPECT_THAT(svg, HasSubstr("no value: r4"));
  curves[1].diverged_at = 2600, curves[2].gaps = {300};
  const std::string ended = curves_svg(crowd(), "val/top1", curves);
  EXPECT_THAT(ended, HasSubstr("a seed diverged, the mean ends: r1 at step 2600"));
  EXPECT_THAT(ended, HasSubstr("MSF, variant 1: 56.12 at step 2500")) << "not of the seeds that go on";
  EXPECT_THAT(ended, HasSubstr("MSF, variant 2: ")) << "a point lacks: it goes on";
  EXPECT_EQ(error_of([&] { curves_svg(crowd(), "val/top1", {}); }),
            "nothing to draw: no run of crowd has said val/top1");
}

TEST(TablePlot, ATableWithoutValuesIsNotDrawn) {
  Table empty = crowd();
  for (auto& row : *empty.mutable_rows()) row.mutable_cells(0)->clear_mean();
  EXPECT_EQ(error_of([&] { bars_svg(empty, 0); }), "nothing to draw: acc (%) of crowd has no value yet");
  EXPECT_EQ(error_of([&] { scatter_svg(empty, 0, 1); }),
            "nothing to draw: acc (%) of crowd has no value yet");
}

TEST(TablePlot, APictureHasADotForEachPointWithAValue) {
  const std::string svg = tuning_svg(sample_tuning(), "");
  std::size_t dots = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++dots;
  EXPECT_EQ(dots, 2u);
  EXPECT_THAT(svg, AllOf(HasSubstr("first: recipe.lr 0.01: 1, chosen"), HasSubstr(">recipe.lr</text>"),
                         HasSubstr(">0.001</text>"), HasSubstr("; not drawn: 2 without a value")));
  EXPECT_EQ(svg, tuning_svg(sample_tuning(), "recipe.lr"));
  try {
    tuning_svg(sample_tuning(), "recipe.rl");
    ADD_FAILURE() << "it is not tuned";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "--x: 'recipe.rl' is no number that is tuned; expected recipe.lr; did you mean 'recipe.lr'?");
  }
  auto empty = sample_tuning();
  empty.clear_rows();
  EXPECT_THROW(tuning_svg(empty, ""), Error);
}

}  // namespace
}  // namespace abl::cli
