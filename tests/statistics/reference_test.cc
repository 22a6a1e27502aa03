// SPDX-License-Identifier: Apache-2.0
// Every function against SciPy and statsmodels: fixtures/cases.json, which fixtures/make_fixtures.py writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "statistics/agreement.h"
#include "statistics/anova.h"
#include "statistics/bootstrap.h"
#include "statistics/difference.h"
#include "statistics/holm.h"
#include "statistics/interval.h"
#include "statistics/paired_t.h"
#include "statistics/permutation.h"
#include "statistics/power.h"
#include "statistics/sequential.h"
#include "statistics/summary.h"
#include "statistics/welch.h"

namespace abl::statistics {
namespace {

using nlohmann::json;
using Values = std::vector<double>;
using Answers = std::map<std::string, std::optional<double>>;

using Function = std::function<Answers(const json&)>;

Values values_of(const json& c, const char* name) { return c.at(name).get<Values>(); }

Answers of_interval(const std::optional<Interval>& interval) {
  if (!interval) return {};
  return {{"low", interval->low}, {"high", interval->high}};
}

BootstrapOptions bootstrap_options(const json& c) {
  return {.kind = c.at("kind") == "BCa" ? Bootstrap::kBca : Bootstrap::kPercentile,
          .level = c.at("level"),
          .resamples = c.at("resamples"),
          .seed = c.at("seed")};
}

Answers of_anova(const json& c) {
  std::vector<FactorCell> cells;
  for (const json& cell : c.at("cells"))
    cells.push_back(
        {.levels = cell.at("levels").get<std::vector<std::size_t>>(), .values = values_of(cell, "values")});
  const auto result = anova(cells, c.at("interactions") ? Interactions::kTwoWay : Interactions::kNone);
  if (!result) return {};
  Answers answers{
      {"residual", result->residual}, {"residual_df", result->residual_df}, {"total", result->total}};
  for (const Effect& effect : result->effects) {
    const std::string name = fmt::format("{}", fmt::join(effect.factors, "x"));
    answers[name + ".ss"] = effect.sum_of_squares;
    answers[name + ".df"] = effect.df;
    answers[name + ".f"] = effect.f;
    answers[name + ".p"] = effect.p;
    answers[name + ".eta_squared"] = effect.eta_squared;
    answers[name + ".partial"] = effect.partial_eta_squared;
  }
  return answers;
}

const std::map<std::string, Function> kFunctions{
    {"summary", {[](const json& c) -> Answers {
       const auto summary = summarise(values_of(c, "values"));
       return {{"n", summary->n},
               {"mean", summary->mean},
               {"sd", summary->sd},
               {"standard_error", summary->standard_error}};
     }}},
    {"t_interval",
     {[](const json& c) { return of_interval(t_interval(values_of(c, "values"), c.at("level"))); }}},
    {"welch", {[](const json& c) -> Answers {
       const auto test = welch_test(values_of(c, "a"), values_of(c, "b"));
       return {{"t", test->t}, {"df", test->df}, {"p", test->p}, {"standard_error", test->standard_error}};
     }}},
    {"difference", {[](const json& c) -> Answers {
       const auto difference =
           difference_to_baseline(values_of(c, "a"), values_of(c, "b"), Pairing::kNone, c.at("level"));
       Answers answers = of_interval(difference->interval);
       answers["p"] = difference->test->p;
       return answers;
     }}},
    {"paired", {[](const json& c) -> Answers {
       const auto test = paired_t_test(values_of(c, "a"), values_of(c, "b"));
       Answers answers = of_interval(interval_of(*test));
       answers.insert({{"t", test->t}, {"df", test->df}, {"p", test->p}});
       return answers;
     }}},
    {"permutation", {[](const json& c) -> Answers {
       return {{"p", permutation_p(values_of(c, "a"), values_of(c, "b"))}};
     }}},
    {"paired_permutation", {[](const json& c) -> Answers {
       return {{"p", paired_permutation_p(values_of(c, "a"), values_of(c, "b"))}};
     }}},
    {"bootstrap", {[](const json& c) {
       return of_interval(bootstrap_interval(values_of(c, "values"), bootstrap_options(c)));
     }}},
    {"bootstrap_difference", {[](const json& c) {
       return of_interval(
           bootstrap_interval_of_difference(values_of(c, "a"), values_of(c, "b"), bootstrap_options(c)));
     }}},
    {"holm", {[](const json& c) {
       Answers answers;
       const Values all = values_of(c, "p");
       for (const auto& p : holm({all.begin(), all.end()})) answers[std::to_string(answers.size())] = p;
       return answers;
     }}},
    {"effect_size", {[](const json& c) -> Answers {
       const auto effect = hedges_g(values_of(c, "a"), values_of(c, "b"), c.at("level"));
       Answers answers = of_interval(effect->interval);
       answers["g"] = effect->g;
       return answers;
     }}},
    {"power", {[](const json& c) -> Answers {
       return {{"power", power_of_t_test(c.at("effect"), c.at("n"), c.at("alpha"))}};
     }}},
    {"seeds_to_see", {[](const json& c) -> Answers {
       return {{"n", seeds_to_see(c.at("difference"), c.at("sd"),
                                  {.power = c.at("power"), .alpha = c.at("alpha")})}};
     }}},
    {"kendall", {[](const json& c) -> Answers {
       const auto kendall = kendall_tau_b(values_of(c, "a"), values_of(c, "b"), c.at("level"));
       Answers answers = of_interval(kendall->interval);
       answers["tau"] = kendall->tau;
       return answers;
     }}},
    {"sign_agreement", {[](const json& c) -> Answers {
       const auto signs = sign_agreement(values_of(c, "a"), values_of(c, "b"), c.at("level"));
       Answers answers = of_interval(signs->interval);
       answers.insert({{"agree", signs->agree}, {"compared", signs->compared}});
       return answers;
     }}},
    {"anova", {of_anova}},
    {"spending", {[](const json& c) {
       const SequentialDesign design{c.at("looks"), c.at("level"),
                                     c.at("kind") == "pocock" ? Spending::kPocock : Spending::kOBrienFleming};
       Answers answers;
       for (std::size_t k = 0; k < design.looks(); ++k) answers[std::to_string(k)] = design.level_at(k);
       return answers;
     }}},
};

/// How far `ours` is from `expected`, as a part of it. Near 0, where a difference of large numbers is all
/// that is left, as a part of what those are: an interval's bound beside its other one, a sum of squares
/// beside all.
double error_of(double ours, double expected, double scale) {
  if (ours == expected) return 0;
  return std::abs(ours - expected) / std::max(std::abs(expected), scale);
}

double scale_of(const json& c, const std::string& name) {
  const json& expected = c.at("expected");
  if (name == "low" || name == "high")
    return std::max(std::abs(expected.at("low").get<double>()), std::abs(expected.at("high").get<double>()));
  if (name.ends_with(".ss")) return 1e-6 * expected.value("total", 0.0);
  return 0;
}

TEST(ReferenceTest, EveryFunctionIsThatOfScipyOrStatsmodels) {
  std::ifstream file{ABLATE_SOURCE_DIR "/tests/statistics/fixtures/cases.json"};
  const json cases = json::parse(file).at("cases");
  ASSERT_GE(cases.size(), 200);
  std::map<std::string, std::pair<int, double>> worst;  // function -> cases, error
  for (const json& c : cases) {
    const std::string function = c.at("function");
    auto& [count, error] = worst[function];
    ++count;
    const Answers answers = kFunctions.at(function)(c);
    for (const auto& [name, expected] : c.at("expected").items()) {
      const auto found = answers.find(name);
      ASSERT_TRUE(found != answers.end() && found->second) << "no " << name << ": " << c.dump();
      const double off = error_of(*found->second, expected, scale_of(c, name));
      error = std::max(error, off);
      EXPECT_LE(off, 1e-10) << name << " is " << *found->second << ": " << c.dump();
    }
  }
  for (const auto& [name, function] : kFunctions) {
    ASSERT_TRUE(worst.contains(name)) << "no case of " << name;
    RecordProperty(name, fmt::format("{} cases, {:.1e}", worst[name].first, worst[name].second));
  }
}

}  // namespace
}  // namespace abl::statistics
