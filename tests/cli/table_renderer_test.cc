// SPDX-License-Identifier: Apache-2.0
#include "cli/table_renderer.h"

#include <gtest/gtest.h>

#include "tests/cli/golden.h"
#include "tests/cli/tables.h"

namespace abl::cli {
namespace {

TEST(TableRenderer, TextIsAsKept) {
  expect_golden("table.txt", render_table(sample_table(), TableFormat::kText));
}
TEST(TableRenderer, MarkdownIsAsKept) {
  expect_golden("table.md", render_table(sample_table(), TableFormat::kMarkdown));
}
TEST(TableRenderer, CsvIsAsKept) {
  expect_golden("table.csv", render_table(sample_table(), TableFormat::kCsv));
}
TEST(TableRenderer, LatexIsAsKept) {
  expect_golden("table.tex", render_table(sample_table(), TableFormat::kLatex));
}
TEST(TableRenderer, JsonIsAsKept) {
  expect_golden("table.json", render_table(sample_table(), TableFormat::kJson));
}

TEST(TableRenderer, ATableWithoutRowsOrPapersHasItsHeadings) {
  auto table = sample_table();
  table.clear_rows();
  for (auto& column : *table.mutable_columns()) column.set_has_paper(false);
  EXPECT_EQ(render_table(table, TableFormat::kText), "row  label  acc (%)  n  params (M)  share\n");
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

}  // namespace
}  // namespace abl::cli
