// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "statistics/difference.h"
#include "statistics/welch.h"
#include "storage/table.h"
#include "tests/storage/fixtures.h"
#include "views/mean_curves.h"
#include "views/views.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const double kNan = std::numeric_limits<double>::quiet_NaN();

class CompareTest : public storage::StoreTest {
 protected:
  /// A sweep of rows a, b, c … whose documents differ in `row`, and in `sweep` between sweeps.
  void submit_named(const std::string& name, int rows, int seeds) {
    auto text = storage::sweep_of(name, rows, seeds, name);
    for (auto& trial : text.trials)
      trial.config = R"({"sweep":")" + name + R"(","row":)" + std::to_string(trial.row) + R"(,"seed":)" +
                     std::to_string(trial.seed) + "}";
    submit(text);
  }
  storage::RunId curve(storage::TrialId trial, const std::vector<std::uint32_t>& steps,
                       const std::vector<double>& values, const std::string& metric = "val/top1") {
    const auto id = run(trial);
    metrics.append(id, {{.name = metric,
                         .steps = steps,
                         .values = values,
                         .times_ms = std::vector<std::int64_t>(steps.size(), 0)}});
    end(id, storage::RunState::kCompleted);
    return id;
  }
  v1::CompareResponse ask(const std::string& a, const std::string& b, const std::string& test = "",
                          std::uint32_t max_points = 0) {
    v1::CompareRequest request;
    request.set_a(a);
    request.set_b(b);
    request.set_test(test);
    request.set_max_points(max_points);
    return compare(db, request);
  }
};

TEST_F(CompareTest, TwoRowsDifferByTheirConfigurationAndByTheTestOfTheirSeeds) {
  submit_named("s", 2, 3);  // trials 1 2 (seed 0), 3 4, 5 6
  const std::vector<double> a{60, 62, 61}, b{70, 71, 73};
  for (storage::TrialId seed = 0; seed < 3; ++seed)
    complete(1 + 2 * seed, a[seed]), complete(2 + 2 * seed, b[seed]);
  const auto compared = ask("s/a", "s/b");
  EXPECT_EQ(compared.a().kind(), "row");
  EXPECT_EQ(compared.a().completed(), 3u);
  ASSERT_THAT(compared.settings(), SizeIs(1)) << "and not the seed";
  EXPECT_EQ(compared.settings(0).key(), "row");
  EXPECT_EQ(compared.settings(0).a(), "0");
  EXPECT_EQ(compared.settings(0).b(), "1");
  ASSERT_THAT(compared.metrics(), SizeIs(1));
  const auto& metric = compared.metrics(0);
  EXPECT_EQ(metric.column(), "acc");
  EXPECT_EQ(metric.a().text(), "61.00 ± 1.00");
  EXPECT_EQ(metric.b().n(), 3u);
  EXPECT_NEAR(metric.difference(), 214.0 / 3 - 61, 1e-12);
  EXPECT_EQ(metric.difference_text(), "+10.33");
  EXPECT_DOUBLE_EQ(metric.p(), statistics::welch_test(b, a)->p);
  EXPECT_DOUBLE_EQ(metric.p_corrected(), metric.p()) << "one test is its own family";
  EXPECT_DOUBLE_EQ(metric.g(), statistics::hedges_g(b, a)->g);
  EXPECT_EQ(metric.verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_GT(metric.interval().low(), 0);
  const auto other_way = ask("s/b", "s/a").metrics(0);
  EXPECT_DOUBLE_EQ(other_way.difference(), -metric.difference());
  EXPECT_EQ(other_way.verdict(), v1::Comparison::VERDICT_WORSE);
}

TEST_F(CompareTest, WhereNoTestCanBeMadeItSaysWhy) {
  submit_named("s", 2, 3);
  complete(1, 60), complete(2, 70);
  EXPECT_THAT(ask("s/a", "s/b").legend(),
              HasSubstr("no test can be made: n = 1 and 1: a test needs two seeds on both sides"));
  submit_named("t", 2, 1);
  EXPECT_THAT(ask("s", "t").legend(), HasSubstr("nothing is tested: no metric that a column takes"));
  complete(3, 60), complete(4, 71);
  EXPECT_THAT(ask("s/a", "s/b").legend(), HasSubstr("Holm's correction over"));
}

TEST_F(CompareTest, PairsAreOfOneSeed) {
  submit_named("s", 2, 3);
  complete(1, 60), complete(3, 70), complete(5, 80);
  complete(2, 61), complete(4, 71.2), complete(6, 81.1);
  EXPECT_EQ(ask("s/a", "s/b").metrics(0).verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
  const auto paired = ask("s/a", "s/b", "paired");
  EXPECT_EQ(paired.metrics(0).verdict(), v1::Comparison::VERDICT_BETTER);
  EXPECT_THAT(paired.legend(), HasSubstr("paired t-test"));
}

TEST_F(CompareTest, WhatNoColumnTakesIsShownAndNotTestedUnlessItIsAskedFor) {
  submit_named("s", 2, 2);
  for (storage::TrialId trial = 1; trial <= 4; ++trial) {
    const auto id = run(trial);
    metrics.append(id, {{.name = "val/top1", .steps = {1}, .values = {60.0 + trial}, .times_ms = {0}},
                        {.name = "extra", .steps = {1}, .values = {1.0 * trial}, .times_ms = {0}}});
    end(id, storage::RunState::kCompleted);
  }
  const auto compared = ask("s/a", "s/b");
  ASSERT_THAT(compared.metrics(), SizeIs(2));
  EXPECT_EQ(compared.metrics(0).metric(), "val/top1") << "columns first";
  EXPECT_EQ(compared.metrics(1).family(), 0u);
  EXPECT_FALSE(compared.metrics(1).has_p());
  EXPECT_DOUBLE_EQ(compared.metrics(1).difference(), 1);
  v1::CompareRequest request;
  request.set_a("s/a"), request.set_b("s/b");
  request.add_metrics("extra");
  const auto asked = compare(db, request);
  ASSERT_THAT(asked.metrics(), SizeIs(1));
  EXPECT_TRUE(asked.metrics(0).has_p());
  request.add_metrics("val/top1"), request.add_metrics("extra");
  const auto twice = compare(db, request);
  ASSERT_THAT(twice.metrics(), SizeIs(2)) << "a metric that is named twice is one test";
  EXPECT_EQ(twice.metrics(0).family(), 2u);
  request.clear_metrics(), request.add_metrics("extar");
  EXPECT_THAT(error_of([&] { compare(db, request); }).second, HasSubstr("did you mean 'extra'?"));
}

TEST_F(CompareTest, ASeedThatDivergedLeavesNoTestAndSaysSo) {
  submit_named("s", 2, 2);
  complete(1, 60), complete(3, 61), complete(2, 62), complete(4, kNan);
  const auto metric = ask("s/a", "s/b").metrics(0);
  EXPECT_EQ(metric.b().text(), "1/2 diverged");
  EXPECT_FALSE(metric.has_difference());
  EXPECT_EQ(metric.why(), "seed 1 of B diverged");
  EXPECT_EQ(metric.verdict(), v1::Comparison::VERDICT_NOT_TOLD_APART);
}

TEST_F(CompareTest, LastValuesOfDifferentStepsAreNoted) {
  submit_named("s", 2, 2);
  const auto first = curve(1, {10, 20}, {60, 61}), second = curve(2, {10}, {62});
  curve(3, {10, 20}, {60, 61}), curve(4, {10, 20}, {62, 63});
  EXPECT_THAT(ask(std::to_string(first), std::to_string(second)).notes(),
              ElementsAre("last values are from different steps, A at 20 and B at 10: val/top1"));
  EXPECT_THAT(ask("s/a", "s/b").notes(),
              ElementsAre("last values are from different steps, A at 20 and B at 10 to 20: val/top1"));
  submit_named("t", 2, 1);
  curve(5, {10, 20}, {60, 61}), curve(6, {10, 20}, {62, 63});
  EXPECT_THAT(ask("t/a", "t/b").notes(), IsEmpty());
  EXPECT_THAT(
      ask("s", "t").notes(),
      ElementsAre("last values are from different steps, A at 10 to 20 and B at 20: val/top1 of row b"));
}

TEST_F(CompareTest, ARunWithoutAnyValueSaysWhatItIs) {
  submit_named("s", 3, 1);
  const auto first = curve(1, {10}, {60});
  const auto second = run(2);
  const auto compared = ask(std::to_string(first), std::to_string(second));
  EXPECT_THAT(compared.notes(),
              ElementsAre("run " + std::to_string(second) + " reported no metric: it is running"));
  EXPECT_EQ(compared.metrics(0).b().missing(),
            "run " + std::to_string(second) + " reported no val/top1: it is running");
  EXPECT_THAT(ask("s/a", "s/c").notes(),
              ElementsAre("no trial of s/c has completed: there is nothing to compare yet"));
}

TEST_F(CompareTest, ARunIsNamedByItsNumberOrByItsTrial) {
  submit_named("s", 2, 2);
  const auto first = complete(1, 60), second = complete(4, 65);
  const auto by_number = ask(std::to_string(first), std::to_string(second));
  EXPECT_EQ(by_number.a().kind(), "run");
  EXPECT_EQ(by_number.b().row(), "b");
  EXPECT_EQ(by_number.b().seed(), 1);
  EXPECT_DOUBLE_EQ(by_number.metrics(0).difference(), 5);
  EXPECT_FALSE(by_number.metrics(0).has_p()) << "one value on a side is no sample";
  EXPECT_THAT(by_number.metrics(0).why(), HasSubstr("two seeds on both sides"));
  const auto by_place = ask("s/a/0", "s/b/1");
  EXPECT_EQ(by_place.a().run(), first);
  EXPECT_EQ(by_place.b().run(), second);
  EXPECT_EQ(error_of([&] { ask("s/a/0", "s/a/1"); }),
            (std::pair{Code::kFailedPrecondition, std::string{"s/a/1 has no run yet: it is queued"}}));
  EXPECT_THAT(error_of([&] { ask("s/a/0", "s/a/7"); }).second, HasSubstr("has no seed '7': it has 0, 1"));
  EXPECT_EQ(error_of([&] { ask("s/a/0", "99"); }).first, Code::kNotFound);
}

TEST_F(CompareTest, WhatIsMisspeltIsNamedWithTheNearest) {
  submit_named("sharing", 2, 1);
  EXPECT_THAT(error_of([&] { ask("sharing", "shering"); }).second, HasSubstr("did you mean 'sharing'?"));
  EXPECT_THAT(error_of([&] { ask("sharing/a", "sharing/row"); }).second,
              HasSubstr("sweep sharing has no row 'row'"));
  EXPECT_EQ(error_of([&] { ask("sharing", "sharing/a"); }).second,
            "cannot compare the sweep sharing with the row sharing/a: expected two sweeps, or rows and runs");
  EXPECT_THAT(error_of([&] { ask("sharing/a", "sharing/b", "welsh"); }).second,
              HasSubstr("did you mean 'welch'?"));
}

TEST_F(CompareTest, TwoSweepsAreComparedRowByRowAndWhatDiffersEverywhereIsSaidOnce) {
  submit_named("one", 2, 2);  // trials 1 2 3 4
  submit_named("two", 3, 2);  // trials 5 6 7, 8 9 10
  complete(1, 60), complete(3, 62), complete(2, 70), complete(4, 72);
  complete(5, 80), complete(8, 81), complete(6, 70), complete(9, 71);
  const auto compared = ask("one", "two");
  EXPECT_EQ(compared.common(), 2u);
  EXPECT_THAT(compared.only_a(), IsEmpty());
  EXPECT_THAT(compared.only_b(), ElementsAre("c"));
  ASSERT_THAT(compared.settings(), SizeIs(1));
  EXPECT_EQ(compared.settings(0).key(), "sweep");
  EXPECT_EQ(compared.settings(0).b(), "\"two\"");
  ASSERT_THAT(compared.rows(), SizeIs(2));
  EXPECT_THAT(compared.rows(0).settings(), IsEmpty());
  EXPECT_DOUBLE_EQ(compared.rows(0).metrics(0).difference(), 80.5 - 61);
  EXPECT_EQ(compared.rows(0).metrics(0).family(), 2u);
  EXPECT_DOUBLE_EQ(compared.rows(0).metrics(0).p_corrected(), 2 * compared.rows(0).metrics(0).p());
  v1::CompareRequest request;
  request.set_a("one"), request.set_b("two");
  request.set_count(1);
  const auto first = compare(db, request);
  EXPECT_EQ(first.rows(0).metrics(0).family(), 2u) << "of all rows, however many are shown at once";
  EXPECT_DOUBLE_EQ(first.rows(0).metrics(0).p_corrected(), compared.rows(0).metrics(0).p_corrected());
  EXPECT_EQ(first.legend(), compared.legend());
  EXPECT_EQ(first.left_out(), 1u);
  EXPECT_EQ(first.next(), 1u);
  request.set_first(first.next());
  const auto second = compare(db, request);
  ASSERT_THAT(second.rows(), SizeIs(1));
  EXPECT_EQ(second.rows(0).id(), "b");
  EXPECT_EQ(second.next(), 0u);
  EXPECT_DOUBLE_EQ(second.rows(0).metrics(0).p_corrected(), compared.rows(1).metrics(0).p_corrected());
  request.add_metrics("val/tpo1");
  EXPECT_THAT(error_of([&] { compare(db, request); }).second,
              HasSubstr("no column of both one and two takes a metric 'val/tpo1'; did you mean 'val/top1'?"));
}

TEST_F(CompareTest, OfSweepsWithVeryManyRowsACorrectionIsForAllOfThem) {
  for (const char* name : {"one", "two"}) {
    auto sweep = storage::sweep_of(name, 1001, 2, name);
    for (std::size_t row = 0; row < sweep.sweep.rows.size(); ++row)
      sweep.sweep.rows[row] = {.id = "r" + std::to_string(row), .config_hash = name + std::to_string(row)};
    for (auto& trial : sweep.trials) trial.config_hash = fmt::format("{}-{}-{}", name, trial.row, trial.seed);
    sweep.sweep.baseline = "r0";
    submit(sweep);
  }
  for (const storage::TrialId first : {0U, 2002U})
    for (storage::TrialId seed = 0; seed < 2; ++seed)
      complete(first + 1 + 1001 * seed, 60.0 + 10 * (first > 0) + 0.001 * seed);
  const auto compared = ask("one", "two");
  EXPECT_EQ(compared.common(), 1001u);
  const auto& metric = compared.rows(0).metrics(0);
  EXPECT_EQ(metric.family(), 1001u) << "whichever are shown, and whether they have a p";
  EXPECT_DOUBLE_EQ(metric.p_corrected(), std::min(1.0, 1001 * metric.p()));
  EXPECT_THAT(compared.legend(), HasSubstr("Bonferroni's correction over the 1001 rows of a column"));
}

TEST_F(CompareTest, EachMetricHasItsShareOfThePointsThatAreRead) {
  submit_named("s", 2, 1);
  std::vector<std::uint32_t> steps(60'000);
  std::iota(steps.begin(), steps.end(), 0U);
  const std::vector<double> values(steps.begin(), steps.end());
  const std::vector<std::int64_t> times(steps.size(), 0);
  for (const storage::TrialId trial : {1U, 2U}) {
    const auto id = run(trial);
    for (const char* name : {"val/top1", "a"})
      metrics.append(id, {{.name = name, .steps = steps, .values = values, .times_ms = times}});
    end(id, storage::RunState::kCompleted);
  }
  const auto compared = ask("s/a/0", "s/b/0", "", 10);
  ASSERT_THAT(compared.metrics(), SizeIs(2));
  for (const auto& metric : compared.metrics()) {
    EXPECT_TRUE(metric.has_curves()) << metric.metric();
    EXPECT_TRUE(metric.curves().thinned());
  }
}

TEST_F(CompareTest, CurvesSayWhereTheyCross) {
  submit_named("s", 2, 2);
  curve(1, {1, 2, 3, 4}, {10, 20, 30, 40}), curve(3, {1, 2, 3, 4}, {12, 22, 32, 42});
  curve(2, {1, 2, 3, 4}, {5, 15, 45, 50}), curve(4, {1, 2, 3, 4}, {7, 17, 47, 52});
  const auto curves = ask("s/a", "s/b", "", 10).metrics(0).curves();
  EXPECT_DOUBLE_EQ(curves.a_last(), 41);
  EXPECT_DOUBLE_EQ(curves.b_best(), 51);
  EXPECT_EQ(curves.b_best_step(), 4u);
  ASSERT_THAT(curves.crossings(), SizeIs(1));
  EXPECT_EQ(curves.crossings(0).step(), 3u);
  EXPECT_EQ(curves.crossings(0).higher(), "b");
  EXPECT_THAT(curves.steps(), ElementsAre(1u, 2u, 3u, 4u));
  EXPECT_THAT(curves.b(), ElementsAre(6, 16, 46, 51));
  EXPECT_THAT(ask("s/a", "s/b").metrics(0).curves().steps(), IsEmpty()) << "unless they are asked for";
  EXPECT_FALSE(ask("s/a/0", "s/a/0", "", 10).metrics(0).curves().crossings_in_all());
}

TEST_F(CompareTest, RowsOfTwoSweepsHaveCurvesWhereTheyAreAskedFor) {
  submit_named("one", 2, 1);  // trials 1 2
  submit_named("two", 2, 1);  // trials 3 4
  curve(1, {1, 2}, {10, 20}), curve(2, {1, 2}, {10, 20}), curve(3, {1, 2}, {5, 25}),
      curve(4, {1, 2}, {15, 30});
  EXPECT_FALSE(ask("one", "two").rows(0).metrics(0).has_curves());
  const auto compared = ask("one", "two", "", 10);
  EXPECT_EQ(compared.rows(0).metrics(0).curves().crossings_in_all(), 1u);
  EXPECT_EQ(compared.rows(1).metrics(0).curves().crossings_in_all(), 0u);
  EXPECT_THAT(compared.rows(1).metrics(0).curves().b(), ElementsAre(15, 30));
}

TEST(MeanCurvesTest, RunsMeasuredAtOtherStepsAreInterpolated) {
  const auto curves = mean_curves({{.name = "m", .steps = {0, 10}, .values = {0, 10}, .times_ms = {}}},
                                  {{.name = "m", .steps = {5, 10, 15}, .values = {1, 2, 3}, .times_ms = {}}});
  ASSERT_TRUE(curves);
  EXPECT_THAT(curves->steps, ElementsAre(5u, 10u)) << "where both are";
  EXPECT_THAT(curves->a, ElementsAre(5, 10));
  EXPECT_THAT(curves->b, ElementsAre(1, 2));
}

TEST(MeanCurvesTest, ARunThatDivergedEndsWithItsLastFinitePoint) {
  const storage::Series diverged{.name = "m", .steps = {1, 2, 3}, .values = {1, 2, kNan}, .times_ms = {}};
  const storage::Series whole{.name = "m", .steps = {1, 2, 3}, .values = {3, 2, 1}, .times_ms = {}};
  EXPECT_THAT(mean_curves({diverged}, {whole})->steps, ElementsAre(1u, 2u));
  const storage::Series lost{.name = "m", .steps = {1}, .values = {kNan}, .times_ms = {}};
  EXPECT_FALSE(mean_curves({lost}, {whole}));
  EXPECT_FALSE(mean_curves({}, {whole}));
}

TEST(MeanCurvesTest, CurvesThatTouchDoNotCross) {
  const storage::Series a{.name = "m", .steps = {1, 2, 3}, .values = {1, 1, 1}, .times_ms = {}};
  const storage::Series b{.name = "m", .steps = {1, 2, 3}, .values = {2, 1, 2}, .times_ms = {}};
  EXPECT_EQ(curves_message(*mean_curves({a}, {b}), protocol::Better::kHigher, 0).crossings_in_all(), 0u);
}

}  // namespace
}  // namespace abl::views
