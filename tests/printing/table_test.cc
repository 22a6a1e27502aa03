// SPDX-License-Identifier: Apache-2.0
#include "printing/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/golden.h"
#include "tests/printing/screen.h"
#include "tests/printing/tables.h"

namespace abl::printing {
namespace {

TEST(TableRenderer, TextIsAsKept) {
  expect_golden("printing", "table.txt", render_table(sample_table(), TableFormat::kText));
}
TEST(TableRenderer, MarkdownIsAsKept) {
  expect_golden("printing", "table.md", render_table(sample_table(), TableFormat::kMarkdown));
}
TEST(TableRenderer, CsvIsAsKept) {
  expect_golden("printing", "table.csv", render_table(sample_table(), TableFormat::kCsv));
}
TEST(TableRenderer, LatexIsAsKept) {
  expect_golden("printing", "table.tex", render_table(sample_table(), TableFormat::kLatex));
}
TEST(TableRenderer, JsonIsAsKept) {
  expect_golden("printing", "table.json", render_table(sample_table(), TableFormat::kJson));
}

TEST(TableRenderer, ATableWithoutRowsOrPapersHasItsHeadings) {
  auto table = sample_table();
  table.clear_rows();
  for (auto& column : *table.mutable_columns()) column.set_has_paper(false);
  EXPECT_EQ(render_table(table, TableFormat::kText), "row  acc (%)  n  params (M)  share\n");
}

TEST(TableRenderer, WhatANumberHidesIsMarkedAndNoted) {
  auto table = sample_table();
  table.mutable_rows(0)->mutable_cells(0)->set_before_mend(1);
  auto& half = *table.mutable_rows(1)->mutable_cells(0);
  half.set_unfilled(1);
  half.set_missing("reported no val/top1; it reported loss");
  table.add_notes("rows o, h have identical curves");
  const std::string text = render_table(table, TableFormat::kText);
  EXPECT_NE(text.find("81.25 ± 0.35 †"), std::string::npos) << text;
  EXPECT_NE(text.find("– acc: reported no val/top1; it reported loss (row h)\n"), std::string::npos)
      << "although another seed has a value";
  EXPECT_NE(text.find("note: rows o, h have identical curves\n"), std::string::npos) << text;
  EXPECT_NE(render_table(table, TableFormat::kMarkdown).find("\n- rows o, h have"), std::string::npos);
  const std::string latex = render_table(table, TableFormat::kLatex);
  EXPECT_NE(latex.find("0.35{$^\\dagger$}"), std::string::npos) << latex;
  EXPECT_NE(latex.find("% rows o, h have identical curves\n"), std::string::npos) << latex;
  EXPECT_EQ(render_table(table, TableFormat::kCsv).find("†"), std::string::npos) << "which is for programs";
}

TEST(TableRenderer, AReasonThatSeveralColumnsShareIsSaidOnce) {
  ablate::v1::Table table = sample_table();
  table.mutable_rows(2)->mutable_cells(1)->set_n(0);
  table.mutable_rows(2)->mutable_cells(1)->set_missing("2 of 2 trials are queued");
  table.mutable_rows(1)->mutable_cells(1)->set_n(0);
  table.mutable_rows(1)->mutable_cells(1)->set_missing("it is not counted");
  const std::string text = render_table(table, TableFormat::kText);
  EXPECT_NE(
      text.find("– acc, params: 2 of 2 trials are queued (row a)\n– params: it is not counted (row h)\n"),
      std::string::npos)
      << text;
}

TEST(TableRenderer, EachMetricHasItsOwnNWhereTheyDiffer) {
  auto table = sample_table();
  table.clear_rows();
  auto& other = *table.add_columns() = table.columns(0);
  other.set_name("top5");
  other.set_heading("top5");
  auto& row = *table.add_rows();
  row.set_id("o");
  for (const std::uint32_t n : {2, 0, 0, 1}) {
    row.add_cells()->set_n(n);
    row.mutable_cells()->rbegin()->set_of(2);
  }
  const std::string text = render_table(table, TableFormat::kText);
  EXPECT_NE(text.find("acc (%)  n  params (M)  share  top5 (%)    n"), std::string::npos) << text;
}

const Screen kNarrow{80};

int widest(const std::string& text) {
  int width = 0;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) width = std::max(width, display_width(line));
  return width;
}

TEST(TableRenderer, FactorsAreShortColumnsAndMetricsAreThereAt80Columns) {
  const std::string text = render_table(factor_table(), TableFormat::kText, &kNarrow);
  expect_golden("printing", "table_factors_80.txt", text);
  EXPECT_LE(widest(text.substr(0, text.find("\n\n"))), 80);
}

TEST(TableRenderer, LabelsAreCutBeforeNumbersAreLeftOut) {
  auto table = sample_table();
  table.mutable_rows(1)->set_label(
      "MSF with keys and values tied and a learned temperature for each of the heads of every second layer");
  const std::string text = render_table(table, TableFormat::kText, &kNarrow);
  expect_golden("printing", "table_labels_80.txt", text);
  EXPECT_LE(widest(text.substr(0, text.find("\n\n"))), 80);
}

TEST(TableRenderer, OneMetricStaysHoweverNarrowATerminalIs) {
  const Screen tiny{48};
  const std::string text = render_table(factor_table(), TableFormat::kText, &tiny);
  EXPECT_NE(text.find("79.50 ± 0.12"), std::string::npos) << text;
  EXPECT_NE(text.find("no room for: loss, n, params (M), the paper's top1 (%), "), std::string::npos) << text;
  EXPECT_LE(widest(text.substr(0, text.find("\n\n"))), 48);
}

TEST(TableRenderer, ALabelThatRepeatsItsIdIsNotPrinted) {
  auto table = sample_table();
  for (auto& row : *table.mutable_rows()) row.set_label(row.id());
  const std::string text = render_table(table, TableFormat::kText);
  EXPECT_EQ(text.find("label"), std::string::npos) << text;
}

TEST(TableRenderer, TheBestThatTheSeedsDoNotExplainIsMarked) {
  auto table = sample_table();
  table.mutable_rows(0)->mutable_cells(0)->mutable_comparison()->set_best(true);
  EXPECT_NE(render_table(table, TableFormat::kMarkdown).find("| **81.25 ± 0.35** |"), std::string::npos);
  EXPECT_NE(render_table(table, TableFormat::kLatex).find("& \\bfseries 81.25 +- 0.35 &"), std::string::npos);
  const Screen colour{100, true};
  EXPECT_NE(render_table(table, TableFormat::kText, &colour).find("\x1b[1m81.25 ± 0.35\x1b[0m"),
            std::string::npos);
  EXPECT_EQ(render_table(sample_table(), TableFormat::kMarkdown).find("**"), std::string::npos)
      << "the highest mean alone is no best";
}

TEST(TableRenderer, CsvHasAllDigitsAndOneSpellingOfWhatIsNotFinite) {
  auto table = sample_table();
  auto& first = *table.mutable_rows(0)->mutable_cells(0);
  first.set_mean(0.1 + 0.2), first.set_sd(1.0 / 3e9);
  table.mutable_rows(1)->mutable_cells(0)->set_mean(-std::nan(""));
  auto& last = *table.mutable_rows(2)->mutable_cells(0);
  last.set_n(2), last.set_mean(-std::numeric_limits<double>::infinity()), last.set_sd(std::nan(""));
  const std::string text = render_table(table, TableFormat::kCsv);
  EXPECT_NE(text.find("yes,0.30000000000000004,3.333333333333333e-10,2,"), std::string::npos) << text;
  EXPECT_NE(text.find("no,nan,,1,"), std::string::npos) << text;
  EXPECT_NE(text.find("no,-inf,,2,"), std::string::npos) << text;
}

TEST(TableRenderer, ALabelOfSeveralLinesIsOneInLatex) {
  auto table = sample_table();
  table.mutable_rows(1)->set_label("tied\n\x1b[31mkeys\tand\rvalues");
  table.add_notes("row h: such as 'x\n\\end{document}'");
  const std::string text = render_table(table, TableFormat::kLatex);
  EXPECT_NE(text.find("tied keys and values &"), std::string::npos) << text;
  EXPECT_NE(text.find("% row h: such as 'x \\end{document}'\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

/// A table of a paper: two groups, a row that is not trained, a value in doubt, a column of the paper alone.
ablate::v1::Table paper_table() {
  auto table = sample_table();
  table.set_baseline("");
  (*table.mutable_baselines())["Ours"] = "o";
  auto& printed = *table.add_columns();
  printed.set_name("delta");
  printed.set_heading("delta");
  printed.set_kind(ablate::v1::Column::KIND_PRINTED);
  printed.set_has_paper(true);
  for (auto& row : *table.mutable_rows()) {
    row.set_group(row.id() == "a" ? "Others" : "Ours");
    if (row.id() != "a") row.set_baseline("o");
    row.add_cells()->set_paper(row.id() == "h" ? "+1.2" : "");
  }
  auto& cited = *table.mutable_rows(2);
  cited.set_not_trained("cited");
  cited.set_not_trained_why("as its authors report it");
  cited.mutable_cells(0)->set_of(0);
  cited.mutable_cells(0)->set_paper_mark("doubtful");
  table.mutable_rows(1)->mutable_cells(0)->set_paper_mark("bold");
  return table;
}

TEST(TableRenderer, GroupsAreHeadingsAndARowThatIsNotTrainedHasNoCount) {
  const std::string text = render_table(paper_table(), TableFormat::kText);
  EXPECT_NE(text.find("── Ours ──"), std::string::npos) << text;
  EXPECT_LT(text.find("Ours"), text.find("Original"));
  EXPECT_LT(text.find("── Others ──"), text.find("MSF, Simplest"));
  EXPECT_NE(text.find("61.13 (?)"), std::string::npos) << text;
  EXPECT_EQ(text.find("0/"), std::string::npos) << text;
  EXPECT_NE(text.find("+1.2"), std::string::npos) << text;
}

TEST(TableRenderer, EveryFormatHasGroupsAndThePapersMarks) {
  const auto table = paper_table();
  const std::string markdown = render_table(table, TableFormat::kMarkdown);
  EXPECT_NE(markdown.find("| **Others** |"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("**79.79**"), std::string::npos) << markdown;
  EXPECT_NE(markdown.find("61.13 (?)"), std::string::npos) << markdown;
  const std::string latex = render_table(table, TableFormat::kLatex);
  EXPECT_NE(latex.find("Others"), std::string::npos) << latex;
  const std::string csv = render_table(table, TableFormat::kCsv);
  EXPECT_NE(csv.find("row,label,baseline,group,not_trained,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("no,Others,cited,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("yes,Ours,,"), std::string::npos) << csv;
}

TEST(TableRenderer, SaysThatPercentsAreNotMultiplied) {
  auto table = sample_table();
  EXPECT_EQ(render_table(table, TableFormat::kText).find("multiply"), std::string::npos);
  for (auto& row : *table.mutable_rows())
    if (row.cells(0).has_mean()) row.mutable_cells(0)->set_mean(0.29);
  EXPECT_NE(render_table(table, TableFormat::kText)
                .find("acc: as the runs report it, unit \"%\" does not multiply by 100\n"),
            std::string::npos);
}

}  // namespace
}  // namespace abl::printing
