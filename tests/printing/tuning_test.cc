// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "printing/table.h"
#include "tests/printing/tables.h"

namespace abl::printing {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(TableTuningTest, TheBestPointOfARowStandsFirstAndIsMarked) {
  const std::string text = tuning_text(sample_tuning(), TableFormat::kText);
  const auto best = text.find("1.00 ± 0.20"), other = text.find("2.00 ± 0.10"),
             failed = text.find("seed 101 failed");
  EXPECT_LT(best, other);
  EXPECT_LT(other, failed);
  EXPECT_THAT(text, HasSubstr("recipe.lr"));
  EXPECT_EQ(text.substr(best).find("best"), text.substr(best, text.find('\n', best) - best).find("best"));
  EXPECT_THAT(text,
              HasSubstr("a: recipe.lr 0.01, the best of 3 points: val/loss 1; the better half to 1, the "
                        "worst 2; s.d. of the best over seeds 0.2"));
  EXPECT_THAT(text, HasSubstr("warning: a: 2 of its 3 points have a value"));
  EXPECT_THAT(text, HasSubstr("b|c: 0 of 3 points have a value\n"));
}

TEST(TableTuningTest, MarkdownHasTheSameCells) {
  const std::string text = tuning_text(sample_tuning(), TableFormat::kMarkdown);
  EXPECT_THAT(text, HasSubstr("| **a** | **p1** | **0.01** | **1.00 ± 0.20** | **2** | **best** |\n"));
  EXPECT_THAT(text, HasSubstr("| b\\|c | p0 |"));
  EXPECT_THAT(text, HasSubstr("- each row at the best of 3 points\n"));
}

TEST(TableTuningTest, CsvHasAllDigitsAndAColumnForEachSeed) {
  const std::string text = tuning_text(sample_tuning(), TableFormat::kCsv);
  EXPECT_THAT(text, testing::StartsWith(
                        "row,point,rung,recipe.lr,val/loss,val/loss_sd,val/loss_n,best,seed_100,seed_101\n"
                        "a,p1,0,0.01,1,0.2,2,1,0.9,1.1\na,p0,0,0.002,2,0.1,2,0,1.9,2.1\n"
                        "a,p2,0,0.05,,,1,0,9,\n"));
}

TEST(TableTuningTest, ASearchHasNoRowsAndHigherMayBeBetter) {
  auto search = sample_tuning();
  search.set_search(true);
  search.set_better("higher");
  search.mutable_rows()->RemoveLast();
  search.set_legend("3 points");
  const std::string text = tuning_text(search, TableFormat::kText);
  EXPECT_LT(text.find("2.00 ± 0.10"), text.find("1.00 ± 0.20"));
  EXPECT_THAT(text, AllOf(HasSubstr("\nrecipe.lr 0.01, the best of 3 points"), Not(HasSubstr("row "))));
}

}  // namespace
}  // namespace abl::printing
