// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/progress_reports.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

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

/// Keeps what a rate is made of.
class RateRecorder final : public Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>& values) override {
    points.push_back(values);
  }
  void log(const std::string&, const std::string&) override {}
  void checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) override {}
  void end(const std::string&, const std::string&, bool) override {}
  std::vector<std::map<std::string, double>> points;
};

TEST(ProgressReportsTest, WhatTheTimeWasSpentOnIsSaidOnce) {
  RateRecorder events;
  ProgressReports reports{events, torch::kCPU};
  using Spent = ProgressReports::Spent;
  reports.begin();
  reports.count(20);
  reports.spend(Spent::kData, std::chrono::hours{1});  // more than there was: clocks may differ
  reports.add(10, sums(30, 5, 20), 0.1);
  reports.say_all();
  reports.count(20);
  reports.add(20, sums(30, 5, 20), 0.1);
  reports.say_all();
  ASSERT_EQ(events.points.size(), 2u);
  EXPECT_EQ(events.points[0].at("time/data"), 1);
  EXPECT_EQ(events.points[1].at("time/data"), 0);
  for (const auto& point : events.points) {
    EXPECT_EQ(point.at("time/checkpoints"), 0);
    EXPECT_EQ(point.at("time/evaluation"), 0);
    EXPECT_GT(point.at("images_per_s"), 0);
  }
}

TEST(ProgressReportsTest, TheRateIsThatOfAllTheTime) {
  RateRecorder events;
  ProgressReports reports{events, torch::kCPU};
  const auto begun = std::chrono::steady_clock::now();
  reports.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds{50});  // an evaluation
  const auto spent = std::chrono::steady_clock::now() - begun;
  reports.spend(ProgressReports::Spent::kEvaluation, spent);
  reports.count(20);
  reports.add(10, sums(30, 5, 20), 0.1);
  reports.say_all();
  const double seconds = std::chrono::duration<double>(spent).count();
  EXPECT_LE(events.points.at(0).at("images_per_s"), 20 / seconds) << "nothing is left out";
}

TEST(ProgressReportsTest, PointsThatAreSaidTogetherShareTheirTimeByTheirImages) {
  RateRecorder events;
  ProgressReports reports{events, torch::kCPU};
  const auto begun = std::chrono::steady_clock::now();
  reports.begin();
  reports.spend(ProgressReports::Spent::kData, std::chrono::hours{1});
  reports.count(20);
  reports.add(10, sums(30, 5, 20), 0.1);
  reports.count(40);
  reports.add(20, sums(30, 5, 40), 0.1);
  std::this_thread::sleep_for(std::chrono::milliseconds{1});
  reports.say_all();
  const double longest = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  ASSERT_EQ(events.points.size(), 2u);
  EXPECT_EQ(events.points[0].at("images_per_s"), events.points[1].at("images_per_s"));
  EXPECT_GE(events.points[0].at("images_per_s"), 60 / longest);
  EXPECT_LE(events.points[0].at("images_per_s"), 60 / 1e-3);
  for (const char* share : {"time/data", "time/checkpoints", "time/evaluation"})
    EXPECT_EQ(events.points[0].at(share), events.points[1].at(share)) << share;
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
