// SPDX-License-Identifier: Apache-2.0
// Tables as documents have them: LaTeX, HTML, pivots.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/file.h"
#include "printing/row_names.h"
#include "printing/sheet.h"
#include "printing/table.h"
#include "tests/error_of.h"
#include "tests/golden.h"
#include "tests/printing/tables.h"
#include "tests/temporary_folder.h"

namespace abl::printing {
namespace {

using ablate::v1::Cell;
using ablate::v1::Column;
using ablate::v1::Table;
using protocol::Shown;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
  expect_golden("printing", "table_rich.tex",
                render_table(rich_table(), TableFormat::kLatex, nullptr,
                             {.shown = {Shown::kValue, Shown::kPaper, Shown::kDifference},
                              .caption = "Accuracy & counts",
                              .label = "tab:msf"}));
}
TEST(TableFormats, HtmlIsAsKept) {
  expect_golden("printing", "table_rich.html", render_table(rich_table(), TableFormat::kHtml));
}
TEST(TableFormats, APivotIsAsKept) {
  expect_golden("printing", "table_pivot.txt", render_table(pivoted_table(), TableFormat::kText));
  expect_golden("printing", "table_pivot.md", render_table(pivoted_table(), TableFormat::kMarkdown));
  expect_golden("printing", "table_pivot.csv", render_table(pivoted_table(), TableFormat::kCsv));
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

TEST(TableFormats, EveryFormatThatPeopleReadSaysWhatIsMissing) {
  Table table = sample_table();
  table.mutable_rows(2)->mutable_cells(0)->set_missing("2 of 2 trials <b>wait</b> for 50% of | a *GPU*");
  EXPECT_THAT(render_table(table, TableFormat::kMarkdown),
              HasSubstr("\n\n- – acc: 2 of 2 trials \\<b>wait\\</b> for 50% of \\| a \\*GPU\\* (row a)\n"));
  const std::string latex = render_table(table, TableFormat::kLatex);
  EXPECT_THAT(latex, HasSubstr("\\midrule\n\\multicolumn{8}{l}{\\footnotesize --: 1 cell without all values} "
                               "\\\\\n\\bottomrule\n"));
  EXPECT_THAT(latex, HasSubstr("\n% – acc: 2 of 2 trials <b>wait</b> for 50% of | a *GPU* (row a)\n"));
  EXPECT_THAT(
      render_table(table, TableFormat::kHtml),
      HasSubstr("<li>– acc: 2 of 2 trials &lt;b&gt;wait&lt;/b&gt; for 50% of | a *GPU* (row a)</li>\n"));
  table.mutable_rows(2)->mutable_cells(0)->clear_missing();
  EXPECT_THAT(render_table(table, TableFormat::kLatex), Not(HasSubstr("without all values")));
}

TEST(TableFormats, ALevelThatARowLacksIsNoGapOfAnUnfinishedTable) {
  EXPECT_THAT(render_table(pivoted_table(), TableFormat::kLatex), Not(HasSubstr("without all values")));
}

TEST(TableFormats, RowsInAnOrderOfTheirOwnHaveNoHeadings) {
  for (const TableFormat format :
       {TableFormat::kText, TableFormat::kMarkdown, TableFormat::kLatex, TableFormat::kHtml}) {
    EXPECT_THAT(render_table(rich_table(), format), HasSubstr("Mean shift"));
    EXPECT_THAT(render_table(rich_table(), format, nullptr, {.flat = true}), Not(HasSubstr("Mean shift")));
  }
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
    for (const auto& column : sheet_of(rich_table(), {.shown = shown}).columns)
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
  EXPECT_THAT(headings(sheet_of(table, {.shown = {Shown::kN}})), testing::Contains("groups"))
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
}  // namespace
}  // namespace abl::printing
