// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/progress_reports.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tests/trainer/small_training.h"

namespace abl::trainer {
namespace {

torch::Tensor sums(double loss, double correct, double images) {
  return torch::tensor({loss, correct, images}, torch::kFloat64);
}

TEST(ProgressReportsTest, APointIsSaidWhenItsStepIsDone) {
  Recorder events;
  ProgressReports reports{events, torch::kCPU};
  reports.begin();
  reports.add(10, sums(30, 5, 20), 0.1);
  reports.add(20, sums(10, 20, 20), 0.05);
  reports.say(9);
  EXPECT_TRUE(events.points.empty());
  reports.say(11);
  EXPECT_EQ(events.points["train/loss"], (std::map<std::int64_t, double>{{10, 1.5}}));
  EXPECT_EQ(events.points["train/top1"].at(10), 25);
  reports.say_all();
  EXPECT_EQ(events.points["lr"], (std::map<std::int64_t, double>{{10, 0.1}, {20, 0.05}}));
  reports.say_all();
  EXPECT_EQ(events.points["lr"].size(), 2u);
}

TEST(ProgressReportsTest, TheSumsAreThoseOfTheirTime) {
  Recorder events;
  ProgressReports reports{events, torch::kCPU};
  auto loss = sums(30, 5, 20);
  reports.add(10, loss, 0.1);
  loss.zero_();
  reports.say_all();
  EXPECT_EQ(events.points["train/loss"].at(10), 1.5);
}

TEST(ProgressReportsTest, ALossThatIsNotFiniteIsSaidAndEndsTheTraining) {
  Recorder events;
  ProgressReports reports{events, torch::kCPU};
  reports.add(7, sums(NAN, 0, 20), 0.1);
  EXPECT_THROW(reports.say(7), Error);
  EXPECT_EQ(events.points["train/loss"].count(7), 1u);
}

}  // namespace
}  // namespace abl::trainer
