// SPDX-License-Identifier: Apache-2.0
#include "sweeps/design.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "sweeps/yaml_reader.h"

namespace abl::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TunedRange unit_range(const std::string& key) { return {.key = key, .min = 0, .max = 1}; }

double value(const Point& point, const std::string& key) { return std::stod(point.at(key)); }

TEST(DesignTest, EachBinOfEachKeyHasOneOfTwoToTheKPoints) {
  for (const std::uint64_t seed : {0, 1, 12345}) {
    std::vector<TunedRange> ranges;
    for (int key = 0; key < 12; ++key) ranges.push_back(unit_range(std::to_string(key)));
    for (const std::size_t count : {1, 2, 4, 8, 64, 128}) {
      const auto points = draw_points(ranges, Method::kSobol, count, seed);
      ASSERT_EQ(points.size(), count);
      for (const auto& range : ranges) {
        std::set<int> bins;
        for (const auto& point : points)
          bins.insert(static_cast<int>(value(point, range.key) * static_cast<double>(count)));
        EXPECT_GE(bins.size() + (count > 8 ? 1 : 0), count) << "key " << range.key << ", seed " << seed;
      }
    }
  }
}

TEST(DesignTest, TheFirstTwoKeysFillEverySquareOfAGrid) {
  const auto points = draw_points({unit_range("a"), unit_range("b")}, Method::kSobol, 64, 7);
  std::set<std::pair<int, int>> squares;
  for (const auto& point : points)
    squares.emplace(static_cast<int>(value(point, "a") * 8), static_cast<int>(value(point, "b") * 8));
  EXPECT_GE(squares.size(), 63u) << "one may be rounded over an edge";
}

TEST(DesignTest, PointsBeforeTheSeedsShiftAreThoseOfSciPy) {
  // scipy.stats.qmc.Sobol(3, scramble=False).random(8); a shift changes the same bits of all points
  const double scipy[8][3] = {{0, 0, 0},
                              {0.5, 0.5, 0.5},
                              {0.75, 0.25, 0.25},
                              {0.25, 0.75, 0.75},
                              {0.375, 0.375, 0.625},
                              {0.875, 0.875, 0.125},
                              {0.625, 0.125, 0.875},
                              {0.125, 0.625, 0.375}};
  const std::vector<std::string> keys{"a", "b", "c"};
  std::vector<TunedRange> ranges;
  for (const auto& key : keys)
    ranges.push_back({.key = key, .kind = TunedRange::Kind::kInteger, .min = 0, .max = 7});
  const auto points = draw_points(ranges, Method::kSobol, 8, 99);
  ASSERT_EQ(points.size(), 8u);
  for (std::size_t key = 0; key < 3; ++key) {
    const auto shift = std::stoi(points[0].at(keys[key]));
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(std::stoi(points[i].at(keys[key])) ^ shift, static_cast<int>(scipy[i][key] * 8))
          << i << keys[key];
  }
}

TEST(DesignTest, WhatFollowsFromASeedIsTheSameAndAnotherSeedIsAnotherDesign) {
  const std::vector<TunedRange> ranges{unit_range("a"), unit_range("b")};
  for (const auto method : {Method::kSobol, Method::kRandom}) {
    const auto eight = draw_points(ranges, method, 8, 3), four = draw_points(ranges, method, 4, 3);
    EXPECT_TRUE(std::equal(four.begin(), four.end(), eight.begin())) << "fewer are the first of more";
    EXPECT_NE(draw_points(ranges, method, 8, 4), eight);
    const auto alone = draw_points({unit_range("a")}, method, 8, 3);
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_EQ(alone[i].at("a"), eight[i].at("a")) << "whatever keys come after it";
  }
}

TEST(DesignTest, PointsStayTheSameForEver) {
  const std::vector<TunedRange> ranges{{.key = "lr", .min = 1e-4, .max = 1e-2, .log = true}};
  std::vector<std::string> sobol, random;
  for (const auto& point : draw_points(ranges, Method::kSobol, 4, 0)) sobol.push_back(point.at("lr"));
  for (const auto& point : draw_points(ranges, Method::kRandom, 3, 0)) random.push_back(point.at("lr"));
  EXPECT_THAT(sobol, ElementsAre("0.001047", "0.0001047", "0.000331", "0.00331"))
      << "trials that are stored would not be found again";
  EXPECT_THAT(random, ElementsAre("0.001047", "0.0008214", "0.007734"));
}

TEST(DesignTest, EqualRatiosAreEquallyLikelyInALogarithmicRange) {
  const auto points =
      draw_points({{.key = "lr", .min = 1e-4, .max = 1e-2, .log = true}}, Method::kSobol, 64, 1);
  int below = 0;
  for (const auto& point : points) {
    const double lr = value(point, "lr");
    EXPECT_GE(lr, 1e-4);
    EXPECT_LE(lr, 1e-2);
    below += lr < 1e-3 ? 1 : 0;
    EXPECT_LE(point.at("lr").size(), 9u) << point.at("lr") << ": four significant digits";
  }
  EXPECT_EQ(below, 32);
}

TEST(DesignTest, RoundingLeadsNoValueOutOfItsRange) {
  for (const auto& point :
       draw_points({{.key = "x", .min = 0.123456, .max = 0.123461}}, Method::kRandom, 5, 1)) {
    EXPECT_GE(value(point, "x"), 0.123456);
    EXPECT_LE(value(point, "x"), 0.123461);
  }
}

TEST(DesignTest, WholeNumbersAreEquallyLikelyAndSoAreTheirRatiosWithLog) {
  std::map<std::string, int> even, ratios;
  TunedRange range{.key = "n", .kind = TunedRange::Kind::kInteger, .min = 1, .max = 4};
  for (const auto& point : draw_points({range, unit_range("u")}, Method::kSobol, 64, 5))
    ++even[point.at("n")];
  EXPECT_EQ(even, (std::map<std::string, int>{{"1", 16}, {"2", 16}, {"3", 16}, {"4", 16}}));
  range.max = 3, range.log = true;
  for (const auto& point : draw_points({range, unit_range("u")}, Method::kSobol, 64, 5))
    ++ratios[point.at("n")];
  EXPECT_EQ(ratios["1"], 32) << "from 1 to 2 is half of the way from 1 to 4";
  EXPECT_GT(ratios["2"], ratios["3"]);
}

TEST(DesignTest, NoPointComesTwiceAndFewValuesGiveFewPoints) {
  const std::vector<TunedRange> ranges{
      {.key = "schedule", .kind = TunedRange::Kind::kChoices, .choices = {"cosine", "linear", "one-cycle"}},
      {.key = "n", .kind = TunedRange::Kind::kInteger, .min = 1, .max = 2}};
  const auto points = draw_points(ranges, Method::kSobol, 50, 0);
  EXPECT_EQ(points.size(), 6u);
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), 6u);
  EXPECT_EQ(draw_points(ranges, Method::kRandom, 4, 0).size(), 4u);
}

std::vector<std::string> texts(const std::vector<Rung>& rungs) {
  std::vector<std::string> all;
  for (const auto& rung : rungs) all.push_back(fmt::format("{} × {}", rung.points, rung.value));
  return all;
}

TEST(DesignTest, TheLastRungHasAllEpochsAndThereIsSomethingToChoose) {
  EXPECT_THAT(texts(rungs_of({}, 8, 12)), ElementsAre("8 × 3", "4 × 6", "2 × 12"));
  EXPECT_THAT(texts(rungs_of({.keep = 1.0 / 3}, 9, 9)), ElementsAre("9 × 3", "3 × 9"));
  EXPECT_THAT(texts(rungs_of({.first = 1}, 8, 4)), ElementsAre("8 × 1", "4 × 2", "2 × 4"));
  EXPECT_THAT(texts(rungs_of({.first = 1}, 4, 10)),
              ElementsAre("4 × 1", "2 × 2", "2 × 4", "2 × 8", "2 × 10"));
  EXPECT_THAT(texts(rungs_of({}, 1, 5)), ElementsAre("1 × 5"));
  EXPECT_THAT(texts(rungs_of({}, 3, 5)), ElementsAre("3 × 5"));
  EXPECT_THAT(texts(rungs_of({.first = 9}, 8, 4)), ElementsAre("8 × 4"));
}

struct RangesRead {
  std::vector<TunedRange> ranges;
  std::string problems;
};
RangesRead ranges_in(const std::string& text) {
  Problems problems{"f.yaml"};
  const Node root = load_yaml(text, "f.yaml", problems);
  YamlReader reader{problems};
  RangesRead result{.ranges = read_ranges(reader, root, "tune")};
  try {
    problems.throw_if_any();
  } catch (const SweepFileError& error) {
    result.problems = error.what();
  }
  return result;
}

TEST(DesignTest, RangesAreReadAndWrittenForPeople) {
  const auto [ranges, problems] = ranges_in(
      "recipe.lr: {min: 1e-4, max: 1e-2, log: true}\nrecipe.batch: {min: 32, max: 256, integer: true}\n"
      "recipe.schedule: [cosine, linear]\n");
  EXPECT_EQ(problems, "");
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].text(), "recipe.lr 0.0001 to 0.01 (log)");
  EXPECT_EQ(ranges[1].text(), "recipe.batch 32 to 256");
  EXPECT_EQ(ranges[2].text(), "recipe.schedule cosine or linear");
  EXPECT_EQ(ranges[1].line, 2);
}

TEST(DesignTest, WhatIsNoRangeIsNamedWithItsPlace) {
  EXPECT_THAT(ranges_in("{}").problems, HasSubstr("f.yaml:1:1: tune: 0 keys; expected 1 to 32"));
  EXPECT_THAT(ranges_in("lr: 3").problems, HasSubstr("f.yaml:1:5: tune.lr: expected a range, such as {min:"));
  EXPECT_THAT(ranges_in("lr: [1]").problems, HasSubstr("tune.lr: 1 values; expected 2 to 1000"));
  EXPECT_THAT(ranges_in("lr: [1, 1]").problems, HasSubstr("tune.lr: '1' is listed twice"));
  EXPECT_THAT(ranges_in("lr: {min: 1}").problems, HasSubstr("tune.lr: max is missing; expected {min: 1e-4"));
  EXPECT_THAT(ranges_in("lr: {min: 2, max: 2}").problems, HasSubstr("tune.lr.max: 2 is not above min, 2"));
  EXPECT_THAT(ranges_in("lr: {min: 0, max: 2, log: true}").problems,
              HasSubstr("tune.lr.min: 0; expected a number above 0"));
  EXPECT_THAT(ranges_in("lr: {min: 0.5, max: 2, integer: true}").problems,
              HasSubstr("tune.lr.min: 0.5; expected a whole number"));
  EXPECT_THAT(ranges_in("lr: {min: a, max: .nan}").problems,
              HasSubstr("tune.lr.min: invalid value 'a'; expected a number"));
  EXPECT_THAT(ranges_in("lr: {min: 1, max: 2, lgo: true}").problems, HasSubstr("did you mean 'log'?"));
}

}  // namespace
}  // namespace abl::sweeps
