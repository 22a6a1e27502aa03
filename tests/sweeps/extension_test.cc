// SPDX-License-Identifier: Apache-2.0
#include "sweeps/extension.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace abl::sweeps {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

SweepSpec trained(const std::string& recipe, const std::string& seeds = "2", const std::string& more = "") {
  return parse_sweep(
      fmt::format(
          "ablate: 1\nname: s\nbase:\n  model: {{preset: simple-vit-nano}}\n  data: {{name: shapes}}\n"
          "  recipe: {{use: cifar-lite, {}}}\nrows: [{{id: a}}, {{id: b, set: {{recipe.lr: 0.002}}}}]\n"
          "seeds: {}\ntable: {{baseline: a, columns: [{{name: acc, metric: val/top1}}]}}\n{}",
          recipe, seeds, more),
      "s.yaml");
}
Growth between(const SweepSpec& here, const SweepSpec& stored) { return growth(here, stored.canonical); }

constexpr const char* kConstant = "schedule: constant, warmup: 0, epochs: ";

TEST(Extension, TheSameFileChangesNothing) {
  const Growth same = between(trained("epochs: 3"), trained("epochs: 3"));
  EXPECT_THAT(same.changes, IsEmpty());
  EXPECT_THAT(same.refused, IsEmpty());
}

TEST(Extension, MoreEpochsAtAConstantLearningRateGoOnWhereTheStoredTrainingEnded) {
  const Growth growth = between(trained(std::string{kConstant} + "5"), trained(std::string{kConstant} + "3"));
  EXPECT_THAT(growth.changes, ElementsAre(AllOf(HasSubstr("rows a, b: recipe.epochs: 5 here, 3 in the store"),
                                                HasSubstr("its trials go on from their last checkpoints"))));
  EXPECT_TRUE(growth.replaced.at("a").longer);
}

TEST(Extension, MoreEpochsOfAnyOtherScheduleAreANewTrainingAndTheChangeSaysSo) {
  for (const char* schedule :
       {"schedule: cosine, warmup: 0, epochs: ", "schedule: constant, warmup: 0.1, epochs: "}) {
    const Growth growth = between(trained(std::string{schedule} + "5"), trained(std::string{schedule} + "3"));
    ASSERT_THAT(growth.changes, SizeIs(1)) << schedule;
    EXPECT_THAT(growth.changes[0], HasSubstr("this is a new training"));
    EXPECT_FALSE(growth.replaced.at("a").longer);
  }
}

TEST(Extension, FewerEpochsAreNoBeginningToGoOnFrom) {
  EXPECT_FALSE(between(trained(std::string{kConstant} + "3"), trained(std::string{kConstant} + "5"))
                   .replaced.at("a")
                   .longer);
}

TEST(Extension, HowResultsAreJudgedIsDeclaredBeforeThereAreAny) {
  const SweepSpec stored = trained("epochs: 3");
  EXPECT_THAT(between(trained("epochs: 3", "{min: 2, max: 4, until: \"decided(acc)\"}"), stored).refused,
              ElementsAre(HasSubstr("declared before there are any")));
  SweepSpec paired = parse_sweep(
      "ablate: 1\nname: s\nbase:\n  model: {preset: simple-vit-nano}\n  data: {name: shapes}\n"
      "  recipe: {use: cifar-lite, epochs: 3}\nrows: [{id: a}, {id: b, set: {recipe.lr: 0.002}}]\nseeds: 2\n"
      "table: {baseline: a, compare: {test: paired}, columns: [{name: acc, metric: val/top1}]}\n",
      "s.yaml");
  EXPECT_THAT(between(paired, stored).refused, ElementsAre(HasSubstr("table.compare")));
}

TEST(Extension, ResourcesRetryAndLimitsAreForTrialsThatHaveNotStarted) {
  const Growth growth = between(trained("epochs: 3", "2", "retry: {max: 4}\n"), trained("epochs: 3"));
  EXPECT_TRUE(growth.resources);
  EXPECT_THAT(growth.replaced, IsEmpty());
  EXPECT_THAT(growth.changes, ElementsAre(HasSubstr("for trials that have not started")));
}

TEST(SeedRule, IsReadAndIsPartOfWhatASweepIs) {
  const SweepSpec spec = trained("epochs: 3", R"({min: 2, max: 5, until: "ci( acc ) < .5"})");
  ASSERT_TRUE(spec.seeds_rule);
  EXPECT_EQ(spec.seeds_rule->text(), "ci(acc) < 0.5");
  EXPECT_THAT(spec.seeds, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(expand(spec), SizeIs(4)) << "the first two of each row";
  EXPECT_THAT(spec.canonical, HasSubstr("\"seeds_rule\":{\"max\":5,\"min\":2,\"until\":\"ci(acc) < 0.5\"}"));
  EXPECT_EQ(SeedRule::parse(spec.seeds_rule->json()).bound, 0.5);
}

TEST(SeedRule, EveryBoundThatAFileMayHaveCanBeReadAgain) {
  for (const char* bound : {"10000000000000000", "1e16", "1e+20", "12345678901234567890", "1e-99",
                            "0.00000000001", "123456789012.123456789012e-11", "1e99", ".5"}) {
    const SweepSpec spec =
        trained("epochs: 3", std::string{R"({min: 2, max: 5, until: "ci(acc) < )"} + bound + "\"}");
    ASSERT_TRUE(spec.seeds_rule) << bound;
    EXPECT_EQ(SeedRule::parse(spec.seeds_rule->json()).bound, spec.seeds_rule->bound) << bound;
  }
}

TEST(SeedRule, WhatIsWrongWithOneIsSaidAtItsPlace) {
  const auto problem = [](const std::string& seeds) -> std::string {
    try {
      trained("epochs: 3", seeds);
      return "valid";
    } catch (const SweepFileError& error) {
      return error.problems().at(0).text();
    }
  };
  EXPECT_THAT(problem("{min: 2, max: 4, until: \"ci(acc)\"}"), HasSubstr("expected \"ci(COLUMN) < NUMBER\""));
  EXPECT_THAT(problem("{min: 2, max: 4, until: \"ci(acd) < 1\"}"), HasSubstr("did you mean 'acc'"));
  EXPECT_THAT(problem("{min: 4, max: 2, until: \"ci(acc) < 1\"}"), HasSubstr("seeds.max: 2 is below min, 4"));
  EXPECT_THAT(problem("{min: 1, max: 2, until: \"ci(acc) < 1\"}"), HasSubstr("seeds.min"));
  EXPECT_THAT(problem("{min: 2, max: 2}"), HasSubstr("until is missing"));
  EXPECT_THAT(problem("{min: 2, max: 4, untill: \"ci(acc) < 1\"}"), HasSubstr("until"));
  EXPECT_THAT(problem("{min: 2, max: 4, until: \"ci(acc) < 0\"}"), HasSubstr("seeds.until"));
}

}  // namespace
}  // namespace abl::sweeps
