// SPDX-License-Identifier: Apache-2.0
// Tables as documents have them: LaTeX, HTML, pictures, pivots and differences; and what a document says that
// no longer follows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/row_names.h"
#include "cli/table_renderer.h"
#include "cli/table_sheet.h"
#include "tests/cli/golden.h"
#include "tests/cli/tables.h"
#include "tests/temporary_folder.h"

namespace abl::cli {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using protocol::Shown;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// The sample with groups, a best and a second, and differences to the paper.
Table rich_table() {
  Table table = sample_table();
  table.mutable_rows(0)->set_group("Original model");
  table.mutable_rows(1)->set_group("Mean shift");
  table.mutable_rows(2)->set_group("Mean shift");
  table.mutable_rows(0)->mutable_cells(0)->mutable_comparison()->set_best(true);
  table.mutable_rows(1)->mutable_cells(0)->mutable_comparison()->set_second(true);
  auto& worse = *table.mutable_rows(1)->mutable_cells(0);
  worse.set_p(0.01);
  worse.mutable_comparison()->set_verdict(ablate::v1::Comparison::VERDICT_WORSE);
  table.mutable_compare()->set_legend("Welch's t-test");
  table.mutable_rows(0)->mutable_cells(0)->set_paper_difference("+2.35");
  table.mutable_rows(1)->mutable_cells(0)->set_paper_difference("-0.29");
  table.mutable_rows(1)->mutable_cells(0)->set_before_mend(1);
  table.mutable_rows(2)->mutable_cells(0)->set_paper_mark("doubtful");
  table.add_notes("rows o, h have identical curves & more");
  return table;
}

/// Accuracy on two data sets beside the papers', and one column that stands once.
Table pivoted_table() {
  Table table;
  table.set_sweep("study");
  table.set_pivoted(true);
  const auto add_column = [&](const char* name, const char* level, Column::Kind kind) {
    Column& column = *table.add_columns();
    column.set_name(std::string{name} + level);
    column.set_heading(name);
    column.set_kind(kind);
    column.set_level(level);
    column.set_of(*level ? name : "");
    column.set_has_paper(*level);
  };
  add_column("params", "", Column::KIND_COUNT);
  add_column("acc", "cifar10", Column::KIND_METRIC);
  add_column("acc", "cifar100", Column::KIND_METRIC);
  for (const char* id : {"orig", "msf"}) {
    auto& row = *table.add_rows();
    row.set_id(id);
    for (const char* text : {"21.91", "81.00 ± 1.41", "50.00 ± 0.50"}) {
      Cell& cell = *row.add_cells();
      cell.set_text(text);
      cell.set_n(2);
      cell.set_of(2);
      cell.set_mean(50);
      cell.set_paper("79.70");
    }
  }
  Cell& ragged = *table.mutable_rows(1)->mutable_cells(2);
  ragged.Clear();
  ragged.set_text("–");
  ragged.set_missing("no row has data.name = cifar100 here");
  return table;
}

TEST(TableFormats, LatexIsAsKept) {
  expect_golden("table_rich.tex", render_table(rich_table(), TableFormat::kLatex, nullptr,
                                               {.shown = {Shown::kValue, Shown::kPaper, Shown::kDifference},
                                                .caption = "Accuracy & counts",
                                                .label = "tab:msf"}));
}
TEST(TableFormats, HtmlIsAsKept) {
  expect_golden("table_rich.html", render_table(rich_table(), TableFormat::kHtml));
}
TEST(TableFormats, APivotIsAsKept) {
  expect_golden("table_pivot.txt", render_table(pivoted_table(), TableFormat::kText));
  expect_golden("table_pivot.md", render_table(pivoted_table(), TableFormat::kMarkdown));
  expect_golden("table_pivot.csv", render_table(pivoted_table(), TableFormat::kCsv));
}

bool runs(const std::string& command) {
  const int status = std::system((command + " > /dev/null 2>&1").c_str());  // NOLINT: of the test's own words
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(TableFormats, LatexIsTypeset) {
  if (!runs("command -v pdflatex")) GTEST_SKIP() << "pdflatex is not installed";
  for (const char* package : {"booktabs.sty", "siunitx.sty"})
    if (!runs(std::string{"kpsewhich "} + package)) GTEST_SKIP() << package << " is not installed";
  const TemporaryFolder folder;
  std::string document = "\\documentclass{article}\n\\usepackage{booktabs,siunitx}\n\\begin{document}\n";
  document += render_table(rich_table(), TableFormat::kLatex, nullptr,
                           {.shown = values_of<Shown>(), .caption = "C", .label = "l"});
  document += render_table(pivoted_table(), TableFormat::kLatex) + "\\par\n";
  document += render_table(factor_table(), TableFormat::kLatex) + "\\end{document}\n";
  write_file(folder / "table.tex", document);
  EXPECT_TRUE(
      runs("cd " + folder.path().string() + " && pdflatex -interaction=nonstopmode -halt-on-error table.tex"))
      << read_file(folder / "table.log");
}

TEST(TableFormats, HtmlHoldsNothingThatOthersWroteAsMarkup) {
  Table table = sample_table();
  table.mutable_rows(0)->set_label("<script>alert('1')</script>");
  table.set_title("a & b");
  table.add_notes("<b>");
  const std::string html = render_table(table, TableFormat::kHtml);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("<caption>a &amp; b</caption>"));
  EXPECT_THAT(html, HasSubstr("<li>&lt;b&gt;</li>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"number\">acc (%)</th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">o</th>"));
}

TEST(TableFormats, ColumnsShowWhatIsAsked) {
  const auto headings = [](const std::vector<Shown>& shown) {
    std::vector<std::string> found;
    for (const auto& column : sheet_of(rich_table(), shown).columns)
      found.push_back(column.heading + (column.group.empty() ? "" : " | " + column.group));
    return found;
  };
  EXPECT_THAT(headings({Shown::kValue, Shown::kDifference}),
              ElementsAre("row", "label", "acc (%)", "params (M)", "share", "acc (%) | ours − paper"));
  Table table = rich_table();
  table.add_show("value");
  EXPECT_EQ(sheet_of(table).columns.size(), 5u) << "as the sweep file says";
  EXPECT_EQ(error_of([] { shown_named("value,papr"); }),
            "unknown part of a column 'papr'; expected value, n, paper or difference; did you mean 'paper'?");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TableCheck, FindsTheTablesThatHaveAMarker) {
  const auto tables =
      marked_tables(lines_of("# Results\n"
                             "<!-- ablate table a --format markdown --columns value,paper -->\n"
                             "\n"
                             "| row |\n| --- |\n| x |\n\n- a note\n"
                             "```\n<!-- ablate table shown-as-an-example -->\n```\n"
                             "<!-- ablate table \"b\" --long --stats --store=old.db -->\n"
                             "```text\nrow\nx\n```\n"),
                    "r.md");
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].sweep, "a");
  EXPECT_EQ(tables[0].begin, 3u);
  EXPECT_EQ(tables[0].end, 6u);
  EXPECT_THAT(tables[0].options.shown, ElementsAre(Shown::kValue, Shown::kPaper));
  EXPECT_EQ(tables[1].sweep, "b");
  EXPECT_TRUE(tables[1].long_form);
  EXPECT_TRUE(tables[1].stats);
  EXPECT_EQ(tables[1].store, "old.db");
  EXPECT_EQ(tables[1].begin, 13u);
  EXPECT_EQ(tables[1].end, 15u);
}

TEST(TableCheck, AWrongMarkerIsNamedAtItsLine) {
  const auto said = [](const std::string& text) {
    return error_of([&] { marked_tables(lines_of(text), "r.md"); });
  };
  EXPECT_EQ(said("\n<!-- ablate table a --fromat text -->\n"),
            "r.md:2: unknown flag '--fromat' in the marker; expected --format, --columns, --long, --stats, "
            "--tuning, --store, --caption or --label; did you mean '--format'?");
  EXPECT_EQ(said("<!-- ablate table --format markdown -->\n| a |\n"),
            "r.md:1: the marker names no sweep; expected 'ablate table SWEEP'");
  EXPECT_EQ(said("<!-- ablate table a --stats --format markdown -->\n| a |\n"),
            "r.md:1: --stats in a marker is of tables as text; expected no --format");
  EXPECT_EQ(said("<!-- ablate table a --format markdown -->\ntext\n"),
            "r.md:1: no table follows the marker; expected lines that begin with '|'");
  EXPECT_EQ(said("<!-- ablate table a -->\n```\nrow\n"),
            "r.md:1: no table follows the marker; expected a block between lines of ```");
  EXPECT_THAT(said("<!-- ablate table a --format markdwn -->\n| a |\n"),
              HasSubstr("did you mean 'markdown'?"));
}

TEST(RowNamesTest, AFactorIsNamedWhereNoSettingsColumnShowsIt) {
  Table table = factor_table();
  Column& groups = *table.add_columns();
  groups.set_name("groups"), groups.set_kind(Column::KIND_SETTING), groups.set_source("model.groups");
  for (auto& row : *table.mutable_rows()) {
    const auto at = row.id().find("groups=") + 7;
    row.add_cells()->set_text(row.id().find("groups=") == std::string::npos
                                  ? ""
                                  : row.id().substr(at, row.id().find(',', at) - at));
  }
  const auto headings = [](const Sheet& sheet) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < sheet.names; ++i) names.push_back(sheet.columns[i].heading);
    return names;
  };
  EXPECT_THAT(headings(sheet_of(table)), Not(testing::Contains("groups"))) << "the setting's column shows it";
  EXPECT_EQ(sheet_of(table).naming.size(), sheet_of(table).names + 1) << "and tells rows apart";
  EXPECT_THAT(headings(sheet_of(table, {Shown::kN})), testing::Contains("groups"))
      << "without it rows would have the same names";
  table.mutable_columns(table.columns_size() - 1)->set_source("model.heads");
  EXPECT_THAT(headings(sheet_of(table)), testing::Contains("groups")) << "another setting of the same values";
}

TEST(RowNamesTest, NamesAreNotCutUntilTheyAreTheSame) {
  EXPECT_EQ(least_of_names({"lr=0.1,layout=block", "lr=0.1,layout=row", "lr=0.2"}, 6), 16);
  EXPECT_EQ(least_of_names({"a", "b"}, 6), 1);
  EXPECT_EQ(least_of_names({"original", "simplest"}, 6), 6);
  EXPECT_EQ(least_of_names({}, 6), 1);
}

TEST(TableCheck, ADifferenceHasItsLineRowAndColumn) {
  const std::string text = render_table(sample_table(), TableFormat::kMarkdown);
  std::vector<std::string> there = lines_of(text), here = there;
  here[2].replace(here[2].find("81.25"), 5, "81.35");
  here[3] += " ";  // which says the same
  const MarkedTable table{.file = "r.md", .line = 9, .format = TableFormat::kMarkdown, .begin = 10};
  auto found = differences(table, here, there, {0, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].text(),
      fmt::format("r.md:13:{}: row o, Original, acc (%): the file has '81.35 ± 0.35', the store '81.25 ± "
                  "0.35'",
                  here[2].find("81.35") + 1));
  here = there;
  std::swap(here[2], here[3]);
  EXPECT_EQ(differences(table, here, there, {0, 1}).size(), 1u) << "another order";
  here = there;
  here.pop_back();
  found = differences(table, here, there, {0, 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].text(), HasSubstr("row a, MSF, Simplest: the file has 'no such row'"));
  here = there;
  here[0].replace(here[0].find("acc"), 3, "Acc");
  EXPECT_THAT(differences(table, here, there, {0, 1})[0].text(),
              HasSubstr("the file has 'Acc (%)', the store 'acc (%)'"));
  EXPECT_TRUE(differences(table, there, there, {0, 1}).empty());
}

TEST(TableCheck, OtherFormatsAreComparedCellByCellToo) {
  for (const TableFormat format :
       {TableFormat::kLatex, TableFormat::kCsv, TableFormat::kText, TableFormat::kHtml}) {
    const std::vector<std::string> there = lines_of(render_table(sample_table(), format));
    std::vector<std::string> here = there;
    const auto line = std::ranges::find_if(
        here, [](const std::string& text) { return text.find("81.25") != std::string::npos; });
    ASSERT_NE(line, here.end());
    line->replace(line->find("81.25"), 5, "81.35");
    const auto place = line - here.begin();
    const MarkedTable table{.file = "r", .line = 9, .format = format, .begin = 10};
    auto found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << static_cast<int>(format);
    EXPECT_THAT(found[0].says, testing::AllOf(HasSubstr("81.35"), Not(HasSubstr("Original"))));
    EXPECT_EQ(found[0].line, static_cast<std::size_t>(place) + 11);
    EXPECT_GT(found[0].at, 1u);
    here = there;
    here.erase(here.begin() + place);
    found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << "a line that is missing is one difference, whatever follows";
    EXPECT_EQ(found[0].says, "no such line");
    here = there;
    const std::string part = format == TableFormat::kLatex ? " & " : format == TableFormat::kCsv ? "," : "  ";
    here[static_cast<std::size_t>(place)] += part + "wrong" + (format == TableFormat::kHtml ? "</td>" : "");
    found = differences(table, here, there, {0, 1});
    ASSERT_EQ(found.size(), 1u) << "a line with a cell more, format " << static_cast<int>(format);
    EXPECT_THAT(found[0].says, HasSubstr("wrong"));
  }
}

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

}  // namespace
}  // namespace abl::cli
