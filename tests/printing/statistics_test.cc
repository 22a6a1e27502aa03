// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "printing/table.h"
#include "tests/printing/screen.h"
#include "views/comparison.h"

namespace abl::printing {
namespace {

namespace v1 = ablate::v1;
using testing::HasSubstr;
using testing::Not;

/// Rows of one metric with the values of their seeds; the first is the baseline.
v1::Table table_with_seeds(const std::vector<std::pair<std::string, std::vector<double>>>& rows) {
  v1::Table table;
  table.set_baseline(rows.front().first);
  v1::Column& column = *table.add_columns();
  column.set_name("acc");
  column.set_kind(v1::Column::KIND_METRIC);
  column.set_better("higher");
  column.set_digits(2);
  column.set_see(0.3);
  std::uint32_t run = 0;
  for (const auto& [id, values] : rows) {
    v1::TableRow& row = *table.add_rows();
    row.set_id(id);
    v1::Cell& cell = *row.add_cells();
    double sum = 0;
    for (std::size_t seed = 0; seed < values.size(); ++seed) {
      auto& one = *cell.add_runs();
      one.set_run(++run);
      one.set_seed(static_cast<std::int64_t>(seed));
      one.set_value(values[seed]);
      sum += values[seed];
    }
    cell.set_mean(sum / static_cast<double>(values.size()));
    if (values.size() > 1) cell.set_sd(0.1);
    cell.set_n(static_cast<std::uint32_t>(values.size()));
    cell.set_of(3);
    cell.set_text("79.00");
  }
  views::compare_cells(table);
  views::add_statistics(table);
  return table;
}

v1::Table some_rows() {
  return table_with_seeds({{"a", {79.0, 79.1, 79.2}},
                           {"better", {80.0, 80.1, 80.2}},
                           {"worse", {70.0, 70.1, 70.2}},
                           {"near", {79.05, 79.2, 79.25}},
                           {"one", {90.0}}});
}

TEST(TableStatistics, SignsStandBehindWhatDiffersFromTheBaseline) {
  const std::string text = render_table(some_rows(), TableFormat::kText);
  EXPECT_THAT(text, HasSubstr("79.00 ↑"));
  EXPECT_THAT(text, HasSubstr("79.00 ↓"));
  EXPECT_THAT(
      text,
      HasSubstr("\n↑ better, ↓ worse than the baseline: Welch's t-test, two-sided, Holm's correction over "
                "the rows of a column, p < 0.05\n"));
  const std::string markdown = render_table(some_rows(), TableFormat::kMarkdown);
  EXPECT_THAT(markdown, HasSubstr("- ↑ better, ↓ worse than the baseline: Welch's"));
}

TEST(TableStatistics, WithoutADifferenceTheLegendSaysSo) {
  const auto none = table_with_seeds({{"a", {79.0, 79.1, 79.2}}, {"b", {79.0, 79.15, 79.2}}});
  EXPECT_THAT(render_table(none, TableFormat::kText),
              HasSubstr("no row differs from its baseline: Welch's t-test"));
  const auto untested = table_with_seeds({{"a", {79.0}}, {"b", {80.0}}});
  EXPECT_THAT(render_table(untested, TableFormat::kText), Not(HasSubstr("Welch")));
}

TEST(TableStatistics, TheBestIsBoldAndTheSecondUnderlined) {
  const auto table =
      table_with_seeds({{"a", {79.0, 79.1, 79.2}}, {"b", {80.0, 80.1, 80.2}}, {"c", {70.0, 70.1, 70.2}}});
  const Screen terminal{80, true};
  const std::string text = render_table(table, TableFormat::kText, &terminal);
  EXPECT_THAT(text, HasSubstr("\x1b[1m79.00\x1b[0m ↑"));
  EXPECT_THAT(text, HasSubstr("\x1b[4m79.00\x1b[0m"));
  EXPECT_THAT(render_table(table, TableFormat::kMarkdown), HasSubstr("| <u>79.00</u> |"));
}

TEST(TableStatistics, EveryRowSaysAllThatIsKnownOfIt) {
  const std::string text = statistics_text(some_rows());
  EXPECT_THAT(text, HasSubstr("\nacc\n"));
  EXPECT_THAT(text, HasSubstr("78.85 to 79.35"));
  EXPECT_THAT(text, HasSubstr("+1.00     +0.77 to +1.23"));
  EXPECT_THAT(text, HasSubstr("2 to see 0.30"));
  EXPECT_THAT(text, HasSubstr("no interval: one seed (row one)\n"));
  EXPECT_THAT(text, HasSubstr("no test: n = 1 and 3: a test needs two seeds on both sides (row one)\n"));
  EXPECT_THAT(text, HasSubstr("intervals by Student's t, not corrected\n"));
  const Screen narrow{60};
  EXPECT_THAT(statistics_text(some_rows(), &narrow), HasSubstr("no room for: "));
}

TEST(TableStatistics, CsvHasThemInColumnsOfTheirOwn) {
  const std::string csv = render_table(some_rows(), TableFormat::kCsv);
  EXPECT_THAT(
      csv,
      HasSubstr("acc_n,acc_se,acc_low,acc_high,acc_difference,acc_difference_low,acc_difference_high,acc_p,"
                "acc_p_corrected,acc_g,acc_g_low,acc_g_high,acc_to_see,acc_more_seeds\n"));
  EXPECT_THAT(csv, HasSubstr("one,,no,90,,1,,,,10."));
}

TEST(TableStatistics, FactorsAreSortedByWhatTheyExplain) {
  const std::string text = statistics_text(table_with_seeds({{"lr=1,depth=2", {1, 1.1}},
                                                             {"lr=1,depth=4", {5, 5.1}},
                                                             {"lr=2,depth=2", {1.5, 1.6}},
                                                             {"lr=2,depth=4", {5.5, 5.7}}}));
  const auto begin = text.find("analysis of variance");
  ASSERT_NE(begin, std::string::npos) << text;
  const auto depth = text.find("\ndepth ", begin), lr = text.find("\nlr ", begin),
             both = text.find("\nlr × depth ", begin), residual = text.find("\nresidual ", begin);
  EXPECT_LT(depth, lr) << text;
  EXPECT_LT(lr, both);
  EXPECT_LT(both, residual);
  EXPECT_NE(residual, std::string::npos);
}

}  // namespace
}  // namespace abl::printing
