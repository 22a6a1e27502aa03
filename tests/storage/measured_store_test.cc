// SPDX-License-Identifier: Apache-2.0
#include "storage/measured_store.h"

#include <cmath>

#include "storage/removal.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::SizeIs;

class MeasuredStoreTest : public StoreTest {
 protected:
  MeasuredStore measured{db};

  void take(TrialId trial, Milliseconds time, RunState state = RunState::kCompleted) {
    trials.end(run(trial), {.state = state, .took = time}, now);
  }
  double waiting(SweepId sweep, std::uint32_t most) {
    double trials = 0;
    for (const LeftOfRow& row : measured.left(sweep, sweeps.list(1).front().trials.queued, most))
      trials += row.waiting;
    return trials;
  }
};

TEST_F(MeasuredStoreTest, ARowsTimeIsTheMeanOfItsCompletedRunsTheNewestCountingATenthAtLeast) {
  submit(sweep_of("s", 1, 40));
  EXPECT_EQ(measured.find("h-a", 0), std::nullopt);
  take(1, 10s);
  take(2, 20s);
  take(3, 99s, RunState::kFailed);
  ASSERT_TRUE(measured.find("h-a", 0));
  EXPECT_EQ(measured.find("h-a", 0)->runs, 2u);
  EXPECT_DOUBLE_EQ(measured.find("h-a", 0)->seconds, 15);
  EXPECT_EQ(measured.find("h-a", 4), std::nullopt) << "on four GPUs it takes another time";
  for (TrialId trial = 4; trial <= 40; ++trial) take(trial, 100s);
  EXPECT_GT(measured.find("h-a", 0)->seconds, 95) << "its workers are others now";
}

TEST_F(MeasuredStoreTest, TheSpreadOfARowsRunsIsKnownFromTheSecondOn) {
  submit(sweep_of("s", 1, 3));
  take(1, 10s);
  EXPECT_EQ(measured.find("h-a", 0)->deviation, std::nullopt);
  take(2, 20s);
  EXPECT_NEAR(measured.find("h-a", 0)->deviation.value(), std::sqrt(50), 1e-9);
  take(3, 15s);
  EXPECT_NEAR(measured.find("h-a", 0)->deviation.value(), 5, 1e-9);
}

TEST_F(MeasuredStoreTest, OfCalibrationsTheNewestStayWhichAreAllThatAPlanReads) {
  Calibration calibration{.device = "a CPU", .threads = 2, .config = "{}", .steps = 1};
  constexpr int kMore = MeasuredStore::kMostCalibrations + 7;
  for (int i = 0; i < kMore; ++i) {
    calibration.step_hash = std::to_string(i);
    calibration.time = now + i * 1s;
    measured.keep(calibration);
  }
  const auto kept = measured.calibrations(2 * kMore);
  ASSERT_THAT(kept, SizeIs(MeasuredStore::kMostCalibrations));
  EXPECT_EQ(kept.front().step_hash, std::to_string(kMore - 1));
  EXPECT_EQ(kept.back().step_hash, "7");
}

TEST_F(MeasuredStoreTest, APredictionIsKeptForRowsThatWaitForTheirFirstCompletedRunAndGoesWithTheLast) {
  submit(sweep_of("one", 2, 1));
  submit(sweep_of("other", 2, 1));
  const auto remove = [&](const std::string& sweep) {
    Removal removal{db};
    removal.begin(sweep, now);
    while (removal.step(now) == Removal::Step::kMore) {
    }
  };
  measured.predict({{"h-a", 50}, {"h-b", 70}, {"of no row", 90}}, 0);
  EXPECT_EQ(measured.predicted("of no row", 0), std::nullopt);
  take(1, 10s);
  EXPECT_EQ(measured.predicted("h-a", 0), std::nullopt) << "a run has been measured";
  measured.predict({{"h-a", 50}}, 0);
  EXPECT_EQ(measured.predicted("h-a", 0), std::nullopt) << "a plan that was made before is late";
  trials.end(run(2), {.state = RunState::kFailed, .retryable = false}, now);
  remove("one");
  EXPECT_EQ(measured.predicted("h-b", 0), 70) << "another sweep has such a row";
  remove("other");
  EXPECT_EQ(measured.predicted("h-b", 0), std::nullopt);
}

TEST_F(MeasuredStoreTest, ACalibrationTakesThePlaceOfAnOlderOneOfItsStepOnSuchADevice) {
  Calibration calibration{.device = "a CPU",
                          .threads = 2,
                          .step_hash = "h",
                          .config = "{}",
                          .time = now,
                          .step_seconds = 0.25,
                          .step_spread = 0.1,
                          .steps = 7,
                          .image_seconds = 0.002,
                          .start_seconds = 1.5,
                          .checkpoint_seconds = 0.5,
                          .base_bytes = 1e8,
                          .train_images = 4000,
                          .val_images = 500};
  measured.keep(calibration);
  calibration.threads = 1, calibration.time = now - 1s;
  measured.keep(calibration);
  calibration.step_seconds = 0.5, calibration.time = now - 2s;
  measured.keep(calibration);
  const auto kept = measured.calibrations(9);
  ASSERT_THAT(kept, SizeIs(2));
  EXPECT_EQ(kept[0].threads, 2) << "the newest first";
  EXPECT_DOUBLE_EQ(kept[0].step_seconds, 0.25);
  EXPECT_DOUBLE_EQ(kept[0].image_seconds, 0.002);
  EXPECT_EQ(kept[0].val_images, 500);
  EXPECT_DOUBLE_EQ(kept[1].step_seconds, 0.5);
  EXPECT_THAT(measured.calibrations(1), SizeIs(1));
}

TEST_F(MeasuredStoreTest, CompletedRunsAreTheNewestThatRanAloneFromTheirStart) {
  submit(sweep_of("s", 1, 4));
  take(1, 10s);
  take(2, 20s, RunState::kFailed);
  take(3, 30s);
  const auto completed = measured.completed(100, 100);
  ASSERT_THAT(completed, SizeIs(2));
  EXPECT_DOUBLE_EQ(completed[0].seconds, 30);
  EXPECT_DOUBLE_EQ(completed[1].seconds, 10);
  EXPECT_THAT(measured.completed(100, 1), SizeIs(1));
  EXPECT_THAT(measured.completed(2, 100), SizeIs(1)) << "of the newest two runs one failed";
}

TEST_F(MeasuredStoreTest, RunsOfOtherSweepsCountForRowsOfTheSameConfigurationOrTheSameWork) {
  auto first = sweep_of("s", 1, 1), second = sweep_of("t", 1, 1, "other");
  first.sweep.rows[0].work_hash = second.sweep.rows[0].work_hash = "work";
  submit(first);
  submit(second);
  take(1, 10s);
  EXPECT_EQ(measured.find("other-a", 0), std::nullopt);
  EXPECT_EQ(measured.find("work", 0)->seconds, 10);
  EXPECT_EQ(measured.find("", 0), std::nullopt);
}

TEST_F(MeasuredStoreTest, AResumedRunIsTakenForTheWholeOfItsTrial) {
  submit(sweep_of("s", 1, 1));
  const RunId stopped = run(1);
  end(stopped, RunState::kStopped);
  const RunId id = lease(1).run;
  trials.start(
      id,
      {.total_steps = 100, .data_fingerprint = "f1", .resumed_from_step = 75, .resumed_from_run = stopped},
      now);
  trials.end(id, {.state = RunState::kCompleted, .took = 10s}, now);
  EXPECT_DOUBLE_EQ(measured.find("h-a", 0)->seconds, 40);
}

TEST_F(MeasuredStoreTest, WhereAWorkerSaysNoTimeTheClockDoesAndNeverLessThanNothing) {
  submit(sweep_of("s", 1, 2));
  const RunId id = run(1);
  now += 30s;
  end(id, RunState::kCompleted);
  EXPECT_EQ(measured.find("h-a", 0)->seconds, 30);
  const RunId next = run(2);
  now -= 1h;  // somebody set it
  end(next, RunState::kCompleted);
  EXPECT_EQ(measured.find("h-a", 0)->seconds, 15);
}

TEST_F(MeasuredStoreTest, WhatIsLeftIsCountedByRow) {
  submit(sweep_of("s", 3, 2));
  complete(1, 80);
  complete(4, 80);
  run(2);
  const auto left = measured.left(1, 3, 1000);
  std::vector<std::pair<std::string, double>> rows;
  for (const LeftOfRow& row : left) rows.emplace_back(row.id, row.waiting);
  EXPECT_THAT(rows, ElementsAre(std::pair{"a", 0.0}, std::pair{"b", 1.0}, std::pair{"c", 2.0}));
  EXPECT_EQ(left[1].config_hash, "h-b");
  EXPECT_THAT(measured.left(1, 0, 1000), SizeIs(0));
  const auto running = measured.running();
  ASSERT_THAT(running.at(1), SizeIs(1));
  EXPECT_EQ(running.at(1)[0].row, "b");
  EXPECT_TRUE(running.at(1)[0].started);
  const auto open = measured.open(10);
  ASSERT_THAT(open, SizeIs(1));
  EXPECT_EQ(open[0].queued, 3u);
  EXPECT_EQ(open[0].under_way, 1u);
  EXPECT_THAT(measured.open(0), SizeIs(0));
}

TEST_F(MeasuredStoreTest, RowsThatShareTheirTrialsAreLeftOnce) {
  auto text = sweep_of("s", 2, 1);
  text.trials[1].config_hash = text.trials[0].config_hash;
  submit(text);
  EXPECT_EQ(waiting(1, 1000), 1);
  run(1);
  EXPECT_THAT(measured.running().at(1), SizeIs(1));
}

TEST_F(MeasuredStoreTest, OfALongSweepAPartIsLookedAtWhichStandsForAll) {
  const auto cost_of = [&](int seeds) {
    submit(sweep_of("s" + std::to_string(seeds), 20, seeds, std::to_string(seeds)));
    const SweepId sweep = sweeps.list(1).front().id;
    EXPECT_NEAR(waiting(sweep, 60), 20 * seeds, 1e-6) << seeds;
    const auto before = db.steps();
    measured.left(sweep, static_cast<std::uint32_t>(20 * seeds), 60);
    return db.steps() - before;
  };
  const auto few = cost_of(20), many = cost_of(2000);
  EXPECT_LT(many, 2 * few);
}

}  // namespace
}  // namespace abl::storage
