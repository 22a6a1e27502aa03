// SPDX-License-Identifier: Apache-2.0
#include "views/tuning.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace abl::views {
namespace {

using testing::ElementsAre;

constexpr const char* kTune = R"json({"budget": 8, "metric": "val/loss", "better": "lower", "method": "sobol",
  "seeds": [100, 101], "held_out": "0.1", "seed": 0, "ranges": [
    {"key": "recipe.lr", "text": "recipe.lr 0.0001 to 0.01 (log)", "min": 0.0001, "max": 0.01, "log": true},
    {"key": "recipe.schedule", "text": "recipe.schedule cosine or linear", "choices": ["cosine", "linear"]}]})json";

storage::TuningChoice choice(const std::string& row, int completed = 8) {
  return {.row = row,
          .point = 3,
          .values = {{"recipe.lr", "0.0031"}, {"recipe.schedule", "linear"}},
          .value = 1.25,
          .completed = completed,
          .budget = 8};
}

TEST(TuningTest, TheLegendSaysWhatWasTriedAndWhatItWasJudgedBy) {
  const auto tuning = tuning_head(kTune);
  EXPECT_EQ(
      tuning.legend(),
      "each row at the best of 8 points (sobol) of recipe.lr 0.0001 to 0.01 (log), recipe.schedule cosine or "
      "linear; by val/loss (lower is better) on 10 % of the training images, held out; seeds 100, 101");
  ASSERT_EQ(tuning.ranges_size(), 2);
  EXPECT_TRUE(tuning.ranges(0).log());
  EXPECT_EQ(tuning.ranges(0).max(), 0.01);
  EXPECT_FALSE(tuning.ranges(1).has_min());
  EXPECT_EQ(tuning.ranges(1).choices_size(), 2);
}

TEST(TuningTest, FewerPointsThanWereAskedForAreSaidAsTheyAre) {
  EXPECT_EQ(tuning_head(kTune, 6).budget(), 6u);
  EXPECT_THAT(tuning_head(kTune, 6).legend(), testing::StartsWith("each row at the best of 6 points"));
  auto six = choice("a", 6);
  six.budget = 6;
  EXPECT_THAT(tuning_notes(kTune, {six}),
              ElementsAre(testing::StartsWith("tuned: each row at the best of 6 points")));
}

TEST(TuningTest, ASearchByHalvingSaysSo) {
  const auto tuning = tuning_head(
      R"({"budget": 4, "metric": "score", "better": "higher", "method": "halving", "seeds": [0], "search": true,
          "halving": {"key": "params.epochs", "keep": 0.5}, "told": {"params.split": "tune"},
          "ranges": [{"key": "params.lr", "text": "params.lr 1 to 9", "min": 1, "max": 9}]})");
  EXPECT_TRUE(tuning.search());
  EXPECT_EQ(tuning.rung_key(), "params.epochs");
  EXPECT_THAT(tuning_notes(R"({"search": true, "budget": 8, "method": "sobol"})", {choice("search")}),
              ElementsAre(testing::EndsWith(": the best is recipe.lr 0.0031, recipe.schedule linear")));
  EXPECT_EQ(tuning.legend(),
            "4 points (halving) of params.lr 1 to 9, the better ones again with more params.epochs; by score "
            "(higher "
            "is better) with params.split tune; seed 0");
}

TEST(TuningTest, ATableSaysOfEachRowWhatItWasGivenAndWhichWasTunedLess) {
  auto lost = choice("c");
  lost.point.reset();
  lost.why = "cannot be tuned: 8 of 8 points without a value";
  const auto notes = tuning_notes(kTune, {choice("a"), choice("b", 6), lost});
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_THAT(notes[0], testing::StartsWith("tuned: each row at the best of 8 points"));
  EXPECT_THAT(notes[0], testing::EndsWith("seeds 100, 101: a recipe.lr 0.0031, recipe.schedule linear; "
                                          "b recipe.lr 0.0031, recipe.schedule linear"));
  EXPECT_EQ(notes[1], "row b is tuned less than others: 6 of its 8 points have a value");
  EXPECT_EQ(notes[2], "row c: cannot be tuned: 8 of 8 points without a value");
  EXPECT_THAT(tuning_notes("", {}), ElementsAre());
  EXPECT_EQ(tuned_text(choice("a")), "recipe.lr 0.0031, recipe.schedule linear, the best of 8 points");
}

/// Rows of so many points, of which the names count on.
ablate::v1::TuningResponse points_of(const std::vector<int>& rows) {
  ablate::v1::TuningResponse tuning;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& row = *tuning.add_rows();
    row.set_row(std::string(1, static_cast<char>('a' + i)));
    for (int j = 0; j < rows[i]; ++j) row.add_points()->set_point(number++);
  }
  return tuning;
}

std::string text_of(const ablate::v1::TuningResponse& tuning) {
  std::string text;
  for (const auto& row : tuning.rows()) {
    text += row.row() + ":";
    for (const auto& point : row.points()) text += " " + std::to_string(point.point());
    text += row.first() == 0 ? "; " : fmt::format(" (from {}); ", row.first());
  }
  return text + fmt::format("left out {}, next {}", tuning.left_out(), tuning.next());
}

TEST(TuningTest, PointsAreReadInPartsThatMayEndWithinARow) {
  const auto part = [](std::uint32_t first, std::uint32_t count) {
    auto tuning = points_of({2, 3, 0, 1});
    keep_points(tuning, {.first = first, .count = count});
    return tuning;
  };
  EXPECT_EQ(text_of(part(0, 3)), "a: 0 1; b: 2; left out 3, next 3");
  EXPECT_EQ(text_of(part(3, 3)), "b: 3 4 (from 1); d: 5; left out 3, next 0");
  EXPECT_EQ(text_of(part(6, 3)), "left out 6, next 0") << "behind the end";
  EXPECT_EQ(text_of(part(0, 6)), "a: 0 1; b: 2 3 4; c:; d: 5; left out 0, next 0") << "all is as it was";
  auto all = part(0, 3), rest = part(3, 3);
  append_points(rest, all);
  EXPECT_EQ(text_of(all), "a: 0 1; b: 2 3 4; d: 5; left out 0, next 0");
}

TEST(TuningTest, WhatAnotherReleaseStoredIsNoReasonToFail) {
  EXPECT_EQ(tuning_head("").ranges_size(), 0);
  EXPECT_EQ(tuning_head("[]").ranges_size(), 0);
  EXPECT_EQ(tuning_head(R"({"budget": 2})").budget(), 2u);
}

}  // namespace
}  // namespace abl::views
