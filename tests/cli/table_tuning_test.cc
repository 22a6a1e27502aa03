// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "cli/table_renderer.h"

namespace abl::cli {
namespace {

using ablate::v1::TuningResponse;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Two rows at two of three points.
TuningResponse tuning() {
  TuningResponse message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"text(sweep: "s" tuned_by: "s.tuning" method: "sobol" budget: 3 metric: "val/loss" better: "lower"
         seeds: [100, 101] held_out: "0.1" legend: "each row at the best of 3 points"
         ranges { key: "recipe.lr" text: "recipe.lr 0.001 to 0.1 (log)" min: 0.001 max: 0.1 log: true }
         rows {
           row: "a" label: "first" note: "recipe.lr 0.01, the best of 3 points" best: 1
           points { point: 0 values { key: "recipe.lr" value: "0.002" } mean: 2 sd: 0.1 n: 2 text: "2.00 ± 0.10"
                    values_by_seed { seed: 100 value: 1.9 } values_by_seed { seed: 101 value: 2.1 } }
           points { point: 1 values { key: "recipe.lr" value: "0.01" } mean: 1 sd: 0.2 n: 2 text: "1.00 ± 0.20" best: true
                    values_by_seed { seed: 100 value: 0.9 } values_by_seed { seed: 101 value: 1.1 } }
           points { point: 2 values { key: "recipe.lr" value: "0.05" } n: 1 text: "seed 101 failed"
                    values_by_seed { seed: 100 value: 9 } values_by_seed { seed: 101 } }
           spread { points: 2 best: 1 half: 1 worst: 2 seeds_sd: 0.2 }
           warnings: "2 of its 3 points have a value"
         }
         rows { row: "b|c" note: "0 of 3 points have a value"
           points { point: 0 values { key: "recipe.lr" value: "0.002" } text: "–" } })text",
      &message));
  return message;
}

TEST(TableTuningTest, TheBestPointOfARowStandsFirstAndIsMarked) {
  const std::string text = tuning_text(tuning(), TableFormat::kText);
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
  const std::string text = tuning_text(tuning(), TableFormat::kMarkdown);
  EXPECT_THAT(text, HasSubstr("| **a** | **p1** | **0.01** | **1.00 ± 0.20** | **2** | **best** |\n"));
  EXPECT_THAT(text, HasSubstr("| b\\|c | p0 |"));
  EXPECT_THAT(text, HasSubstr("- each row at the best of 3 points\n"));
}

TEST(TableTuningTest, CsvHasAllDigitsAndAColumnForEachSeed) {
  const std::string text = tuning_text(tuning(), TableFormat::kCsv);
  EXPECT_THAT(text, testing::StartsWith(
                        "row,point,rung,recipe.lr,val/loss,val/loss_sd,val/loss_n,best,seed_100,seed_101\n"
                        "a,p1,0,0.01,1,0.2,2,1,0.9,1.1\na,p0,0,0.002,2,0.1,2,0,1.9,2.1\n"
                        "a,p2,0,0.05,,,1,0,9,\n"));
}

TEST(TableTuningTest, ASearchHasNoRowsAndHigherMayBeBetter) {
  auto search = tuning();
  search.set_search(true);
  search.set_better("higher");
  search.mutable_rows()->RemoveLast();
  search.set_legend("3 points");
  const std::string text = tuning_text(search, TableFormat::kText);
  EXPECT_LT(text.find("2.00 ± 0.10"), text.find("1.00 ± 0.20"));
  EXPECT_THAT(text, AllOf(HasSubstr("\nrecipe.lr 0.01, the best of 3 points"), Not(HasSubstr("row "))));
}

TEST(TableTuningTest, APictureHasADotForEachPointWithAValue) {
  const std::string svg = tuning_svg(tuning(), "");
  std::size_t dots = 0;
  for (auto at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++dots;
  EXPECT_EQ(dots, 2u);
  EXPECT_THAT(svg, AllOf(HasSubstr("first: recipe.lr 0.01: 1, chosen"), HasSubstr(">recipe.lr</text>"),
                         HasSubstr(">0.001</text>"), HasSubstr("; not drawn: 2 without a value")));
  EXPECT_EQ(svg, tuning_svg(tuning(), "recipe.lr"));
  try {
    tuning_svg(tuning(), "recipe.rl");
    ADD_FAILURE() << "it is not tuned";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "--x: 'recipe.rl' is no number that is tuned; expected recipe.lr; did you mean 'recipe.lr'?");
  }
  auto empty = tuning();
  empty.clear_rows();
  EXPECT_THROW(tuning_svg(empty, ""), Error);
}

}  // namespace
}  // namespace abl::cli
