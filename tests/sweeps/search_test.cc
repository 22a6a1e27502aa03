// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "sweeps/sweep_spec.h"

namespace abl::sweeps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSearchBase = R"(ablate: 1
name: s
base:
  model: {preset: simple-vit-nano}
  data: {name: shapes, train_images: 200}
  recipe: {use: demo, epochs: 8, batch: 20}
)";

std::string search_sweep(const std::string& search, const std::string& more = "") {
  return kSearchBase + ("search: " + search + "\n") + more;
}

std::string search_problems(const std::string& text) {
  try {
    parse_sweep(text, "f.yaml");
  } catch (const SweepFileError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kSearch =
    "{over: {recipe.lr: {min: 1e-4, max: 1e-2, log: true}, model.depth: {min: 1, max: 4, integer: true}}, "
    "trials: 4, metric: val/loss, seeds: [0, 1]}";

TEST(SearchTest, PointsStandInPlaceOfRowsAndAreTrainedOnWhatIsNotHeldOut) {
  const SweepSpec spec = parse_sweep(search_sweep(kSearch), "f.yaml");
  ASSERT_TRUE(spec.tune);
  EXPECT_TRUE(spec.tune->search);
  EXPECT_EQ(spec.tune->held_out, "0.1");
  ASSERT_EQ(spec.rows.size(), 1u);
  EXPECT_EQ(spec.rows[0].id, "search");
  EXPECT_TRUE(spec.seeds.empty());
  EXPECT_TRUE(expand(spec).empty()) << "it has no trials of its own";
  ASSERT_EQ(spec.candidates.size(), 4u);
  std::set<std::string> depths;
  for (const auto& candidate : spec.candidates) {
    const auto config = nlohmann::json::parse(candidate.tried.config);
    EXPECT_EQ(config["data"]["held_out"], 0.1);
    EXPECT_EQ(config["recipe"]["lr"].dump(), candidate.values.at("recipe.lr")) << "read again exactly";
    EXPECT_EQ(config["model"]["depth"].dump(), candidate.values.at("model.depth"));
    depths.insert(candidate.values.at("model.depth"));
  }
  EXPECT_EQ(depths.size(), 4u) << "each once";
  const SweepSpec points = tuning_sweep(spec);
  EXPECT_EQ(points.name, "s.tuning");
  EXPECT_EQ(points.seeds, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(expand(points).size(), 8u);
}

TEST(SearchTest, HalvingTriesAllPointsWithFewEpochsFirst) {
  const SweepSpec spec =
      parse_sweep(search_sweep("{method: halving, over: {recipe.lr: {min: 1e-4, max: 1e-2, log: "
                               "true}}, trials: 4, metric: val/top1}"),
                  "f.yaml");
  ASSERT_EQ(spec.candidates.size(), 8u) << "two rungs";
  std::map<int, double> epochs;
  for (const auto& candidate : spec.candidates)
    epochs[candidate.rung] = nlohmann::json::parse(candidate.tried.config)["recipe"]["epochs"];
  EXPECT_EQ(epochs, (std::map<int, double>{{0, 4}, {1, 8}}));
  EXPECT_EQ(expand(tuning_sweep(spec)).size(), 4u) << "of the first rung";
  EXPECT_EQ(spec.tune->seeds, std::vector<std::int64_t>{0});
}

TEST(SearchTest, ACommandSearchesItsParameters) {
  const SweepSpec spec = parse_sweep(
      "ablate: 1\nname: c\ncommand: {argv: [prog, \"{params.lr}\"], params: {lr: 1}}\n"
      "search: {over: {params.lr: {min: 1, max: 9, integer: true}}, trials: 3, metric: score, better: "
      "higher}\n",
      "f.yaml", "/tmp");
  EXPECT_EQ(spec.candidates.size(), 3u);
  EXPECT_THAT(spec.candidates[0].tried.config,
              HasSubstr("\"lr\":" + spec.candidates[0].values.at("params.lr")));
}

TEST(SearchTest, WhatDoesNotFitIsNamedWithItsPlace) {
  EXPECT_THAT(search_problems(search_sweep("{trials: 4, metric: val/loss}")),
              HasSubstr("f.yaml:7:9: search.over: missing"));
  EXPECT_THAT(search_problems(search_sweep("{over: {recipe.lr: [1, 2]}, metric: val/loss}")),
              HasSubstr("search.trials: missing; expected how many points are tried"));
  EXPECT_THAT(search_problems(search_sweep(kSearch, "seeds: 3\n")),
              HasSubstr("f.yaml:8:1: seeds: search is given too; expected search.seeds"));
  EXPECT_THAT(search_problems(search_sweep(kSearch, "rows: [{id: a, set: {}}]\n")),
              HasSubstr("rows: search is given too"));
  EXPECT_THAT(
      search_problems(search_sweep("{over: {data.held_out: [0.1, 0.2]}, trials: 2, metric: val/loss}")),
      HasSubstr("search.over.data.held_out: it decides what points are judged by"));
  EXPECT_THAT(
      search_problems(search_sweep("{over: {recipe.batch: {min: 8, max: 64}}, trials: 8, metric: val/loss}")),
      testing::EndsWith("search.over.recipe.batch: takes whole numbers; add integer: true"));
  EXPECT_THAT(search_problems(
                  search_sweep("{over: {data.name: [shapes, tinted-shapes]}, trials: 2, metric: val/loss}")),
              HasSubstr("search.over.data.name: it decides what points are judged by"));
  EXPECT_THAT(search_problems(search_sweep("{over: {recipe.lt: [0.1, 0.2]}, trials: 2, metric: val/loss}")),
              HasSubstr("did you mean 'lr'"));
  EXPECT_THAT(search_problems(
                  search_sweep("{over: {recipe.lr: [0.1, 0.2]}, trials: 2, metric: val/loss, held_out: 0}")),
              HasSubstr("search.held_out: '0' holds nothing out"));
  EXPECT_THAT(search_problems(search_sweep("{over: {recipe.lr: [0.1, 0.2]}, trials: 2, metric: train/loss}")),
              HasSubstr("search.metric: 'train/loss' is not measured on images held out"));
  EXPECT_THAT(search_problems(search_sweep(
                  "{over: {recipe.lr: [0.1, 0.2]}, trials: 2, metric: val/loss, on: seeds 1-2}")),
              HasSubstr("search.on: unknown key"));
}

}  // namespace
}  // namespace abl::sweeps
