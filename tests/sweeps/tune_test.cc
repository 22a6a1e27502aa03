// SPDX-License-Identifier: Apache-2.0
// `tune:` of a sweep file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sweeps/extension.h"
#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTune =
    "{recipe.lr: {min: 1e-4, max: 1e-2, log: true}, budget: 4, metric: val/loss, on: seeds 100-101}";

std::string file(const std::string& tune,
                 const std::string& rows = "[{id: a}, {id: b, set: {model.depth: 3}}]",
                 const std::string& base = "", const std::string& more = "") {
  return fmt::format(
      "ablate: 1\nname: s\nbase:\n  model: {{preset: simple-vit-nano, depth: 2}}\n"
      "  data: {{name: shapes, train_images: 200, val_images: 50{}}}\n"
      "  recipe: {{use: demo, epochs: 8, batch: 20}}\n"
      "rows: {}\nseeds: 2\ntune: {}\n{}",
      base, rows, tune, more);
}
SweepSpec read(const std::string& text) { return parse_sweep(text, "s.yaml"); }
std::string problem(const std::string& text) {
  try {
    read(text);
  } catch (const SweepFileError& error) {
    return error.what();
  }
  return "no problem";
}

TEST(Tune, EachRowHasTheSamePointsAndNoTrialsUntilItsValuesAreKnown) {
  const SweepSpec spec = read(file(kTune));
  ASSERT_EQ(spec.candidates.size(), 8u);
  EXPECT_THAT(expand(spec), IsEmpty());
  std::set<std::string> points;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(spec.candidates[i].values, spec.candidates[i + 4].values);
    points.insert(spec.candidates[i].values.at("recipe.lr"));
  }
  EXPECT_EQ(points.size(), 4u);
}

TEST(Tune, ItsTrialsHoldImagesOutAndWhatIsReportedDoesNot) {
  const SweepSpec spec = read(file(kTune));
  for (const Candidate& candidate : spec.candidates) {
    json tried = json::parse(candidate.tried.config);
    json best = json::parse(candidate.best.config);
    EXPECT_EQ(tried["data"]["held_out"], 0.1);
    EXPECT_FALSE(best["data"].contains("held_out"));
    EXPECT_EQ(best["recipe"]["lr"].dump(), candidate.values.at("recipe.lr"));
    tried["data"].erase("held_out");
    best["data"].erase("val_images");  // of which tuning sees none
    EXPECT_EQ(tried, best) << "nothing else differs";
  }
}

TEST(Tune, ItsTrialsAreASweepOfTheirOwn) {
  const SweepSpec trials = tuning_sweep(read(file(kTune)));
  EXPECT_EQ(trials.name, "s.tuning");
  EXPECT_THAT(trials.seeds, ElementsAre(100, 101));
  EXPECT_EQ(expand(trials).size(), 16u);
  EXPECT_EQ(trials.rows[4].id, "b.p0");
  EXPECT_FALSE(trials.tune);
}

TEST(Tune, WithHalvingTheFirstRungAloneIsQueued) {
  const SweepSpec spec =
      read(file("{recipe.lr: {min: 1e-4, max: 1e-2, log: true}, budget: 4, metric: val/loss, halving: {}}"));
  const SweepSpec trials = tuning_sweep(spec);
  std::size_t later = 0, planned = 0;
  for (const Candidate& candidate : spec.candidates) {
    later += candidate.rung > 0 ? 1 : 0;
    planned += candidate.rung > 0 && candidate.planned ? 1 : 0;
  }
  EXPECT_GT(later, 0u);
  EXPECT_LT(planned, later);
  EXPECT_EQ(expand(trials).size(), 8u) << "4 points of 2 rows";
  EXPECT_LT(json::parse(spec.candidates.front().tried.config)["recipe"]["epochs"].get<double>(), 8);
}

TEST(Tune, TheSeedsAreOthersThanTheSweepsOwn) {
  EXPECT_THAT(tuning_sweep(read(file("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/loss}"))).seeds,
              ElementsAre(100));
  EXPECT_THAT(problem(file("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/loss, on: seeds 1-2}")),
              HasSubstr("seed 1 is one of the sweep's own"));
  EXPECT_THAT(problem(file("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/loss, on: some}")),
              HasSubstr("'some': expected seeds, such as 'seeds 100-101' or [100, 101]"));
}

TEST(Tune, WhatCannotBeTunedIsSaid) {
  const auto one = [](const std::string& tune) { return problem(file(tune)); };
  EXPECT_THAT(
      problem(file(kTune, "[{id: a, set: {recipe.lr: 0.1}}]")),
      HasSubstr("s.yaml:7:22: rows.a.set.recipe.lr: row a sets recipe.lr, which is tuned; take it out "
                "of the row or out of tune"));
  EXPECT_THAT(problem(file(kTune, "[{id: a}, {id: b, from: {row: a}}]")),
              HasSubstr("row b takes the weights of other rows"));
  EXPECT_THAT(problem(file(kTune, "[{id: a}]", ", held_out: 0.2")), HasSubstr("base.data.held_out"));
  EXPECT_THAT(one("{budget: 2, metric: val/loss}"), HasSubstr("tune: no key is tuned"));
  EXPECT_THAT(one("{model.depth: [1, 2], budget: 2, metric: val/loss}"),
              HasSubstr("tune.model.depth: a row's model and data are what it is"));
  EXPECT_THAT(one("{recipe.lr: [0.1, 0.2], metric: val/loss}"), HasSubstr("tune.budget: missing"));
  EXPECT_THAT(one("{recipe.lr: [0.1, 0.2], budget: 2}"), HasSubstr("tune.metric: missing"));
  EXPECT_THAT(one("{recipe.lr: [0.1, 0.2], budget: 2, metric: train/loss}"),
              HasSubstr("'train/loss' is not measured on images held out"));
  EXPECT_THAT(one("{recipe.lrr: [0.1, 0.2], budget: 2, metric: val/loss}"), HasSubstr("did you mean 'lr'"));
  EXPECT_THAT(one("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/loss, buget: 3}"), HasSubstr("budget"));
  EXPECT_THAT(one("{recipe.epochs: [1, 2], budget: 2, metric: val/loss, method: halving}"),
              HasSubstr("successive halving sets it"));
  EXPECT_THAT(one("[]"), HasSubstr(": tune: expected a mapping"));
}

TEST(Tune, TheWorstPointOfAKnownMetricIsNoBestOne) {
  EXPECT_THAT(problem(file("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/loss, better: higher}")),
              HasSubstr("tune.better: of val/loss lower is better"));
  read(file("{recipe.lr: [0.1, 0.2], budget: 2, metric: val/top1, better: higher}"));
}

TEST(Tune, ARowThatIsNotTrainedIsNotTuned) {
  const SweepSpec spec =
      read(file(kTune, "[{id: a}, {id: c, not_trained: {kind: cited, why: \"of another paper\"}}]"));
  EXPECT_EQ(spec.candidates.size(), 4u);
  EXPECT_FALSE(spec.rows[1].tuned);
}

TEST(Tune, AtAScaleTheTunedValueIsWhatIsTrained) {
  const SweepSpec spec = read(file(kTune, "[{id: a}]", "",
                                   "scale: {name: small, says: \"small\", rules: [{set: {recipe.lr: 0.5, "
                                   "recipe.epochs: 2}, why: \"shorter\"}]}\n"));
  EXPECT_EQ(spec.name, "s-small");
  for (const Candidate& candidate : spec.candidates) {
    const json best = json::parse(candidate.best.config);
    EXPECT_EQ(best["recipe"]["lr"].dump(), candidate.values.at("recipe.lr"));
    EXPECT_EQ(best["recipe"]["epochs"], 2.0);
  }
}

TEST(Tune, ACommandSaysHowItHoldsOut) {
  const auto command = [](const std::string& tune) {
    return fmt::format(
        "ablate: 1\nname: s\ncommand: {{argv: [train, '{{params.lr}}', '{{params.split}}'], params: {{lr: 1, "
        "split: "
        "all}}}}\nrows: [{{id: a}}]\ntable: {{columns: [{{name: acc, metric: acc}}]}}\ntune: {}\n",
        tune);
  };
  EXPECT_THAT(problem(command("{params.lr: [1, 2], budget: 2, metric: acc, better: higher}")),
              HasSubstr("a command holds images out of its training by itself"));
  EXPECT_THAT(problem(command("{params.lr: [1, 2], budget: 2, metric: lr, held_out: {params.split: tune}}")),
              HasSubstr("which way is 'lr' better?"));
  EXPECT_THAT(
      problem(command(
          "{params.lr: [1, 2], budget: 2, metric: acc, better: higher, held_out: {params.split: all}}")),
      HasSubstr("tune.held_out: row a has this anyway: its points would be judged by what is reported"));
  const SweepSpec spec = read(
      command("{params.lr: [1, 2], budget: 2, metric: acc, better: higher, held_out: {params.split: tune}}"));
  ASSERT_EQ(spec.candidates.size(), 2u);
  EXPECT_EQ(json::parse(spec.candidates[0].tried.config)["params"]["split"], "tune");
  EXPECT_EQ(json::parse(spec.candidates[0].best.config)["params"]["split"], "all");
}

TEST(Tune, ACommandIsToldWholeNumbersOfWhatHalvingMakesLess) {
  const auto command = [](const std::string& held_out) {
    return fmt::format(
        "ablate: 1\nname: s\ncommand: {{argv: [train, '{{params.lr}}', '{{params.epochs}}', "
        "'{{params.split}}'], "
        "folder: '{{run_dir}}', params: {{lr: 0, epochs: 10, split: all}}, version: v1}}\nseeds: 2\nrows: "
        "[{{id: a}}]\n"
        "table: {{columns: [{{name: acc, metric: acc}}]}}\n"
        "tune: {{params.lr: {{min: 0, max: 1}}, budget: 8, metric: loss, better: lower, halving: {{key: "
        "params.epochs}}, held_out: {}}}\n",
        held_out);
  };
  std::set<json> epochs;
  for (const Candidate& candidate : read(command("{params.split: tune}")).candidates)
    epochs.insert(json::parse(candidate.tried.config)["params"]["epochs"]);
  EXPECT_EQ(epochs, (std::set<json>{3, 5, 10})) << "and not 2.5, which a program may not read";
  EXPECT_THAT(problem(command("{params.epochs: 7}")), HasSubstr("successive halving sets it"));
}

TEST(Tune, HowRowsAreTunedIsDeclaredBeforeThereAreResults) {
  const SweepSpec stored = read(file(kTune));
  const Growth growth = sweeps::growth(
      read(file(
          "{recipe.lr: {min: 1e-4, max: 1e-2, log: true}, budget: 8, metric: val/loss, on: seeds 100-101}")),
      stored.canonical);
  ASSERT_EQ(growth.refused.size(), 1u);
  EXPECT_THAT(growth.refused[0], HasSubstr("tune.budget: 8 here, 4 in the store"));
  EXPECT_EQ(
      sweeps::growth(read(file(kTune, "[{id: a}, {id: b, set: {model.depth: 3}}]", "", "retry: {max: 3}\n")),
                     stored.canonical)
          .refused.size(),
      1u);
}

}  // namespace
}  // namespace abl::sweeps
