// SPDX-License-Identifier: Apache-2.0
#include "storage/metric_store.h"

#include <cmath>
#include <limits>
#include <random>

#include "storage/point_limit.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MetricStoreTest : public StoreTest {
 protected:
  MetricStoreTest() {
    submit(sweep_of("s", 1, 1));
    id = run(1);
  }
  RunId id = 0;
  void append(const std::string& name, std::vector<std::uint32_t> steps, std::vector<double> values) {
    std::vector<std::int64_t> times;
    for (const auto step : steps) times.push_back(1000 + 500 * std::int64_t{step});
    metrics.append(id, {{.name = name,
                         .steps = std::move(steps),
                         .values = std::move(values),
                         .times_ms = std::move(times)}});
  }
};

TEST_F(MetricStoreTest, BatchIsAcceptedOnceAndInOrder) {
  EXPECT_TRUE(metrics.accept(id, 1));
  EXPECT_FALSE(metrics.accept(id, 1)) << "a repetition after a break";
  EXPECT_TRUE(metrics.accept(id, 2));
  EXPECT_FALSE(metrics.accept(id, 1));
  const auto [code, message] = error_of([&] { metrics.accept(id, 5); });
  EXPECT_EQ(code, Code::kFailedPrecondition);
  EXPECT_THAT(message, HasSubstr("batch 3"));
  EXPECT_EQ(trials.run(id).last_seq, 2u);
  EXPECT_EQ(error_of([&] { metrics.accept(99, 1); }).first, Code::kNotFound);
}

TEST_F(MetricStoreTest, PointThatIsThereIsKeptAndCountedOnce) {
  append("train/loss", {1, 2}, {3.0, 2.0});
  append("train/loss", {2, 3}, {9.0, 1.0});
  const auto series = metrics.series(id, {}, 0)[0];
  EXPECT_THAT(series.steps, ElementsAre(1, 2, 3));
  EXPECT_THAT(series.values, ElementsAre(3.0, 2.0, 1.0));
  EXPECT_THAT(series.times_ms, ElementsAre(1500, 2000, 2500));
  EXPECT_EQ(metrics.summaries(id)[0].count, 3u);
  EXPECT_EQ(metrics.summaries(id)[0].mean, 2.0);
}

/// Many at once take another way than one: with values that are not finite, with steps that are there already
/// or stand twice, and with others before and behind.
TEST_F(MetricStoreTest, ALongSeriesIsStoredAsItsPointsOneByOne) {
  std::vector<std::uint32_t> steps;
  std::vector<double> values;
  for (std::uint32_t i = 0; i < 500; ++i) {
    steps.push_back(i == 150 ? 20 : i >= 300 && i < 340 ? 250 + i - 300 : i + 10);
    values.push_back(i % 37 == 0 ? kNaN : i == 90 ? -kInfinity : 1.0 / (i + 1));
  }
  append("train/loss", {5, 40}, {3.0, 4.0});
  append("train/loss", steps, values);
  const RunId together = id;
  const auto stored = metrics.series(together, {}, 0)[0];
  const auto summary = metrics.summaries(together)[0];
  const auto run_together = trials.run(together);

  submit(sweep_of("other", 1, 1, "another"));
  id = run(2);
  append("train/loss", {5}, {3.0});
  append("train/loss", {40}, {4.0});
  for (std::size_t i = 0; i < steps.size(); ++i) append("train/loss", {steps[i]}, {values[i]});
  const auto single = metrics.series(id, {}, 0)[0];
  EXPECT_EQ(stored.steps, single.steps);
  EXPECT_EQ(stored.times_ms, single.times_ms);
  ASSERT_EQ(stored.values.size(), single.values.size());
  for (std::size_t i = 0; i < single.values.size(); ++i)
    EXPECT_TRUE(stored.values[i] == single.values[i] ||
                (std::isnan(stored.values[i]) && std::isnan(single.values[i])))
        << i;
  const auto one_by_one = metrics.summaries(id)[0];
  EXPECT_EQ(summary.count, one_by_one.count);
  EXPECT_DOUBLE_EQ(summary.mean, one_by_one.mean);
  EXPECT_EQ(summary.min, one_by_one.min);
  EXPECT_EQ(summary.last, one_by_one.last);
  EXPECT_EQ(run_together.repeated_points, trials.run(id).repeated_points);
  const auto digests =
      db.prepared("SELECT DISTINCT curves FROM run").all([](const Statement& row) { return row.integer(0); });
  EXPECT_EQ(digests.size(), 1u);
}

TEST_F(MetricStoreTest, RunningSummaryEqualsOneOverAllPoints) {
  std::mt19937 random{7};
  std::vector<double> all;
  std::uint32_t step = 0;
  for (int batch = 0; batch < 20; ++batch) {
    std::vector<std::uint32_t> steps;
    std::vector<double> values;
    for (int i = 0; i < 1 + batch % 5; ++i) {
      steps.push_back(step += 1 + random() % 3);
      values.push_back(static_cast<double>(random() % 40) / 8);
      all.push_back(values.back());
    }
    append("val/loss", steps, values);
    append("val/top1", steps, values);
  }
  const auto summaries = metrics.summaries(id);
  ASSERT_EQ(summaries.size(), 2u);
  const auto [low, high] = std::ranges::minmax_element(all);
  double sum = 0;
  for (const double value : all) sum += value;
  for (const auto& summary : summaries) {
    EXPECT_EQ(summary.count, all.size());
    EXPECT_EQ(summary.min, *low);
    EXPECT_EQ(summary.max, *high);
    EXPECT_DOUBLE_EQ(summary.mean, sum / static_cast<double>(all.size()));
    EXPECT_EQ(summary.last, all.back());
    EXPECT_EQ(summary.last_step, step);
  }
  const auto series = metrics.series(id, {"val/top1"}, 0)[0];
  const auto step_of = [&](double value) {
    return series.steps[static_cast<std::size_t>(std::ranges::find(all, value) - all.begin())];
  };
  EXPECT_EQ(summaries[0].best, *low) << "a loss is better when lower";
  EXPECT_EQ(summaries[0].best_step, step_of(*low)) << "the earliest of equals";
  EXPECT_EQ(summaries[1].best, *high);
  EXPECT_EQ(summaries[1].best_step, step_of(*high));
}

TEST_F(MetricStoreTest, BestIsWhatTheColumnsSay) {
  auto text = sweep_of("second", 1, 1);
  text.sweep.columns = {{.name = "fid",
                         .kind = Column::Kind::kMetric,
                         .source = "distance",
                         .take = protocol::Take::kBest,
                         .better = protocol::Better::kLower},
                        {.name = "loss",
                         .kind = Column::Kind::kMetric,
                         .source = "val/loss",
                         .better = protocol::Better::kNone}};
  submit(text);  // claims the same trial
  append("distance", {1, 2, 3, 4}, {40, 10, 25, 10});
  append("val/loss", {1, 2, 3}, {3, 1, 2});
  const auto summaries = metrics.summaries(id);
  EXPECT_EQ(summaries[0].best, 10);
  EXPECT_EQ(summaries[0].best_step, 2u) << "the earliest of equals";
  EXPECT_EQ(summaries[0].max_step, 1u);
  EXPECT_EQ(summaries[1].best, 1) << "by its name, where no column says";
  auto other = sweep_of("third", 1, 1);
  other.sweep.columns = {{.name = "d",
                          .kind = Column::Kind::kMetric,
                          .source = "distance",
                          .better = protocol::Better::kHigher}};
  submit(other);
  EXPECT_EQ(metrics.summaries(id)[0].best, 40) << "columns that disagree leave it to the name";
}

TEST_F(MetricStoreTest, EqualCurvesHaveEqualDigestsInWhateverOrderTheyCame) {
  auto text = sweep_of("others", 3, 1, "other");
  submit(text);
  const auto digest = [&](RunId of) {
    return db.prepared("SELECT curves FROM run WHERE id = :run")
        .bind(":run", of)
        .one([](const Statement& row) { return row.integer(0); });
  };
  const RunId first = id;
  EXPECT_EQ(digest(first), 0);
  append("train/loss", {1, 2}, {3, kNaN});
  append("val/top1", {2}, {50});
  append("images_per_s", {1, 2}, {100, 101});
  const RunId second = id = run(2);
  append("images_per_s", {1, 2}, {7, 8});
  append("val/top1", {2}, {50});
  append("train/loss", {2}, {kNaN});
  append("train/loss", {1}, {3});
  EXPECT_EQ(digest(first), digest(second));
  append("train/loss", {1}, {4});
  EXPECT_EQ(digest(first), digest(second)) << "a point that is there already counts once";
  end(second, RunState::kLost);
  const RunId resumed = id = lease(2).run;
  trials.start(
      resumed,
      {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = 1, .resumed_from_run = second},
      now);
  EXPECT_NE(digest(resumed), digest(first));
  append("train/loss", {2}, {kNaN});
  append("val/top1", {2}, {50});
  EXPECT_EQ(digest(resumed), digest(first)) << "with what it went on from";
  append("val/top1", {3}, {50});
  EXPECT_NE(digest(resumed), digest(first));
}

TEST_F(MetricStoreTest, RefusedLinesAreCountedWithTheFirstAsExample) {
  metrics.add_refused(id, 0, "");
  metrics.add_refused(id, 2, "line one");
  metrics.add_refused(id, 1, "line two");
  EXPECT_EQ(trials.run(id).refused_lines, 3u);
  EXPECT_EQ(trials.run(id).refused_example, "line one");
  end(id, RunState::kLost);
  const RunId resumed = lease(1).run;
  trials.start(resumed,
               {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = 1, .resumed_from_run = id},
               now);
  EXPECT_EQ(trials.run(resumed).refused_lines, 3u) << "what they would have said is missing here too";
}

TEST(PointStride, KeepsNoMoreThanHalfAsManyAgainHoweverManyCome) {
  EXPECT_EQ(point_stride(kWholeRun - 1, kWholeRun - 1), 1u);
  EXPECT_EQ(point_stride(100 * kWholeRun, kWholeMetric - 1), 1u) << "a metric that says little";
  std::uint64_t kept = kWholeRun;
  for (std::uint64_t said = kWholeRun; said < kWholeRun << 20; said *= 2) {
    const std::uint64_t stride = point_stride(said, said);
    EXPECT_EQ(point_stride(2 * said - 1, 2 * said - 1), stride);
    kept += said / stride;
  }
  EXPECT_LE(kept, kWholeRun * 3 / 2);
  EXPECT_EQ(point_stride(100 * kWholeRun, 3 * kWholeMetric), 16u) << "it is thinned as by itself";
}

TEST_F(MetricStoreTest, OfARunThatSaysTooMuchPointsAreThinnedAndSummariesAreOfAll) {
  append("a", {1, 2}, {7, 9});
  append("val", {1}, {5});
  // as if it had said so many, of which the first two are in the file
  const std::string many = std::to_string(kWholeRun);
  db.execute("UPDATE metric_summary SET count = " + many + ", finite = " + many + " WHERE max = 9");
  std::vector<std::uint32_t> steps;
  std::vector<double> values;
  for (std::uint32_t step = 3; step <= 1002; ++step)
    steps.push_back(step), values.push_back(step == 4 ? 1e4 : 8);
  values.back() = 6;
  append("a", steps, values);
  append("val", {2, 3}, {4, 3});
  EXPECT_EQ(metrics.page(id, "val", -1, 100).steps.size(), 3u) << "a metric that says little is kept whole";
  const Series kept = metrics.page(id, "a", -1, 10'000);
  EXPECT_EQ(kept.steps.size(), 252u) << "one of four";
  EXPECT_EQ(metrics.points(id, {}, 0), 255u);
  EXPECT_EQ(metrics.series(id, {"a"}, 10)[0].steps.back(), kept.steps.back())
      << "curves are drawn to their end";
  const auto check = [&](RunId of) {
    const MetricSummary all = metrics.summaries(of)[0];
    EXPECT_EQ(all.count, kWholeRun + 1000);
    EXPECT_EQ(all.max, 1e4);
    EXPECT_EQ(all.max_step, 4u) << "which is not kept";
    EXPECT_EQ(all.min, 6);
    EXPECT_EQ(all.last, 6);
    EXPECT_EQ(all.last_step, 1002u);
    EXPECT_DOUBLE_EQ(all.mean, (16 + 998 * 8 + 1e4 + 6) / (kWholeRun + 1000.0));
  };
  check(id);
  EXPECT_EQ(trials.run(id).refused_lines, 750u);
  EXPECT_EQ(trials.run(id).refused_example,
            "'a' at step 4 (a run keeps some of its points beyond 4 million; last, best and mean count all)");
  append("a", {4, 7}, {0, 8});
  check(id);
  EXPECT_EQ(trials.run(id).refused_lines, 751u) << "a step that is not kept cannot be told from a new one";
  append("a", {7}, {0});
  EXPECT_EQ(trials.run(id).repeated_points, 1u);
  end(id, RunState::kLost);

  const auto resume = [&](std::uint32_t step) {
    const RunId resumed = lease(1).run;
    trials.start(
        resumed,
        {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = step, .resumed_from_run = id},
        now);
    return resumed;
  };
  const RunId whole = resume(1002);
  check(whole);
  end(whole, RunState::kLost);
  const MetricSummary part = metrics.summaries(resume(500))[0];
  EXPECT_EQ(part.max, 1e4) << "known, though the point is not kept";
  EXPECT_EQ(part.min, 7);
}

TEST_F(MetricStoreTest, PointsOfAStepThatHasAnotherValueAreCounted) {
  append("acc", {0, 1}, {0.5, kNaN});
  append("acc", {0, 1, 2}, {0.5, kNaN, 0.75});
  EXPECT_EQ(trials.run(id).repeated_points, 0u) << "said once more";
  append("acc", {0, 1, 2, 3}, {0.6, 0.7, 0.75, 0.8});
  EXPECT_EQ(trials.run(id).repeated_points, 2u);
  EXPECT_EQ(metrics.series(id, {}, 0)[0].values[0], 0.5) << "the first is kept";
  end(id, RunState::kLost);
  const RunId resumed = lease(1).run;
  trials.start(resumed,
               {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = 1, .resumed_from_run = id},
               now);
  EXPECT_EQ(trials.run(resumed).repeated_points, 2u);
}

TEST_F(MetricStoreTest, LastIsTheValueOfTheHighestStepWhateverCameLast) {
  append("lr", {10, 5}, {0.1, 0.2});
  append("lr", {7}, {0.3});
  EXPECT_EQ(metrics.summaries(id)[0].last, 0.1);
  EXPECT_EQ(metrics.summaries(id)[0].last_step, 10u);
}

TEST_F(MetricStoreTest, ValuesThatAreNotFiniteAreKept) {
  append("train/loss", {1, 2, 3, 4}, {2.0, kInfinity, -kInfinity, kNaN});
  const auto values = metrics.series(id, {}, 0)[0].values;
  EXPECT_EQ(values[1], kInfinity);
  EXPECT_EQ(values[2], -kInfinity);
  EXPECT_TRUE(std::isnan(values[3]));
  const auto summary = metrics.summaries(id)[0];
  EXPECT_EQ(summary.count, 4u);
  EXPECT_TRUE(std::isnan(summary.last));
  EXPECT_EQ(summary.min, 2.0);
  EXPECT_EQ(summary.max, 2.0) << "of the finite ones";
  EXPECT_EQ(summary.mean, 2.0);
  EXPECT_EQ(summary.best, 2.0);
  append("only/nan", {1}, {kNaN});
  EXPECT_TRUE(std::isnan(metrics.summaries(id)[0].best));
  EXPECT_TRUE(std::isnan(metrics.summaries(id)[0].mean));
}

TEST_F(MetricStoreTest, RateIsMeasuredFromTheRunsOwnPoints) {
  append("train/loss", {10}, {3});
  EXPECT_EQ(trials.run(id).step, 10u);
  EXPECT_EQ(trials.run(id).steps_per_second, 0) << "one point has no rate";
  append("train/loss", {20, 30}, {2, 1});
  EXPECT_EQ(trials.run(id).step, 30u);
  EXPECT_DOUBLE_EQ(trials.run(id).steps_per_second, 2) << "500 ms a step";
}

TEST_F(MetricStoreTest, OnlyTheNamedMetricsAreRead) {
  append("a", {1}, {1});
  append("b", {1}, {1});
  EXPECT_EQ(metrics.series(id, {}, 0).size(), 2u);
  ASSERT_EQ(metrics.series(id, {"b", "none"}, 0).size(), 1u);
  EXPECT_EQ(metrics.series(id, {"b"}, 0)[0].name, "b");
}

TEST_F(MetricStoreTest, ThinningKeepsTheEndsAndEveryPeak) {
  std::vector<std::uint32_t> steps;
  std::vector<double> values;
  for (std::uint32_t step = 0; step < 1000; ++step) {
    steps.push_back(step);
    values.push_back(step == 333 ? 50 : step == 777 ? -50 : step == 500 ? kNaN : std::sin(step * 0.05));
  }
  append("train/loss", steps, values);
  for (const std::uint32_t budget : {1u, 2u, 3u, 4u, 5u, 20u, 101u, 1000u, 5000u}) {
    const auto thin = metrics.series(id, {}, budget)[0];
    EXPECT_LE(thin.steps.size(), budget);
    EXPECT_EQ(thin.steps.back(), 999u);
    EXPECT_TRUE(std::ranges::is_sorted(thin.steps));
    EXPECT_EQ(std::ranges::adjacent_find(thin.steps), thin.steps.end())
        << "no point twice, budget " << budget;
    EXPECT_EQ(thin.values.size(), thin.steps.size());
    EXPECT_EQ(thin.times_ms.size(), thin.steps.size());
    if (budget >= 2) {
      EXPECT_EQ(thin.steps.front(), 0u);
    }
    if (budget < 20) continue;
    for (const std::uint32_t peak : {333u, 777u, 500u})
      EXPECT_THAT(thin.steps, testing::Contains(peak)) << "budget " << budget;
  }
}

TEST_F(MetricStoreTest, LogIsReadByByteOffsetAcrossChunks) {
  metrics.append_log(id, "hello ");
  metrics.append_log(id, "");
  metrics.append_log(id, "wide world\n");
  metrics.append_log(id, std::string_view{"\0\xff!", 3});
  EXPECT_EQ(trials.run(id).log_bytes, 20u);
  EXPECT_EQ(metrics.log(id, 0, 100), std::string("hello wide world\n\0\xff!", 20));
  EXPECT_EQ(metrics.log(id, 3, 8), "lo wide ");
  EXPECT_EQ(metrics.log(id, 6, 4), "wide");
  EXPECT_EQ(metrics.log(id, 20, 100), "");
  EXPECT_EQ(metrics.log(id, 99, 100), "");
}

TEST_F(MetricStoreTest, LogTailIsTheLastLines) {
  EXPECT_EQ(metrics.log_tail(id, 3), "");
  metrics.append_log(id, "one\ntwo\nth");
  metrics.append_log(id, "ree\nfour\n");
  EXPECT_EQ(metrics.log_tail(id, 2), "three\nfour\n");
  EXPECT_EQ(metrics.log_tail(id, 3), "two\nthree\nfour\n");
  EXPECT_EQ(metrics.log_tail(id, 99), "one\ntwo\nthree\nfour\n");
  metrics.append_log(id, "unfinished");
  EXPECT_EQ(metrics.log_tail(id, 1), "unfinished");
  EXPECT_EQ(metrics.log_tail(id, 2), "four\nunfinished");
  EXPECT_EQ(metrics.log_tail(id, 99, 7), "inished") << "no more bytes than asked for";
}

}  // namespace
}  // namespace abl::storage
