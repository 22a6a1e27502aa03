// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/progress_reports.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "tests/trainer/small_training.h"

namespace abl::trainer {
namespace {

torch::Tensor sums(double loss, double correct, double images) {
  return torch::tensor({loss, correct, images, 10.0}, torch::kFloat64);
}

torch::Tensor gradients(double norms = 0, double steps = 0, double skipped = 0) {
  return torch::tensor({norms, steps, skipped}, torch::kFloat64);
}

TEST(ProgressReportsTest, GradientsHaveTheirMeanNormAndStepsThatWereLeftOutAreCounted) {
  Recorder whole, half;
  training::ProgressReports reports{whole, torch::kCPU};
  training::ProgressReports of_half{half, torch::kCPU, /*skips_steps=*/true};
  reports.add(10, 0, sums(30, 5, 20), gradients(15, 10), 0.1);
  of_half.add(10, 0, sums(30, 5, 20), gradients(12, 8, 2), 0.1);
  of_half.add(11, 10, sums(30, 5, 20), gradients(0, 0, 1), 0.1);
  reports.say_all(), of_half.say_all();
  EXPECT_EQ(whole.points["train/grad_norm"], (std::map<std::int64_t, double>{{10, 1.5}}));
  EXPECT_FALSE(whole.points.contains("train/skipped_steps"));
  EXPECT_EQ(half.points["train/grad_norm"], (std::map<std::int64_t, double>{{10, 1.5}}))
      << "a step without a finite norm has none";
  EXPECT_EQ(half.points["train/skipped_steps"], (std::map<std::int64_t, double>{{10, 2}, {11, 1}}));
}

TEST(ProgressReportsTest, APointIsSaidWhenItsStepIsDone) {
  Recorder events;
  training::ProgressReports reports{events, torch::kCPU};
  reports.begin();
  reports.add(10, 0, sums(30, 5, 20), gradients(), 0.1);
  reports.add(20, 10, sums(10, 20, 20), gradients(), 0.05);
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
  training::ProgressReports reports{events, torch::kCPU};
  auto loss = sums(30, 5, 20);
  reports.add(10, 0, loss, gradients(), 0.1);
  loss.zero_();
  reports.say_all();
  EXPECT_EQ(events.points["train/loss"].at(10), 1.5);
}

/// Keeps what a rate is made of.
class RateRecorder final : public protocol::Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>& values) override {
    if (values.contains("images_per_s")) points.push_back(values);
  }
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) override {
    ++checkpoints;
    std::this_thread::sleep_for(of_a_checkpoint);
  }
  void end(Status, const std::string&, bool) override {}
  std::vector<std::map<std::string, double>> points;
  std::chrono::milliseconds of_a_checkpoint{0};
  std::atomic<int> checkpoints = 0;
};

TEST(ProgressReportsTest, WhatTheTimeWasSpentOnIsSaidOnce) {
  RateRecorder events;
  training::ProgressReports reports{events, torch::kCPU};
  using Spent = training::ProgressReports::Spent;
  reports.begin();
  reports.count(20);
  reports.spend(Spent::kData, std::chrono::hours{1});  // more than there was: clocks may differ
  reports.add(10, 0, sums(30, 5, 20), gradients(), 0.1);
  reports.say_all();
  reports.count(20);
  reports.add(20, 10, sums(30, 5, 20), gradients(), 0.1);
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
  training::ProgressReports reports{events, torch::kCPU};
  const auto begun = std::chrono::steady_clock::now();
  reports.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds{50});  // an evaluation
  const auto spent = std::chrono::steady_clock::now() - begun;
  reports.spend(training::ProgressReports::Spent::kEvaluation, spent);
  reports.count(20);
  reports.add(10, 0, sums(30, 5, 20), gradients(), 0.1);
  reports.say_all();
  const double seconds = std::chrono::duration<double>(spent).count();
  EXPECT_LE(events.points.at(0).at("images_per_s"), 20 / seconds) << "nothing is left out";
}

TEST(ProgressReportsTest, PointsThatAreSaidTogetherShareTheirTimeByTheirImages) {
  RateRecorder events;
  training::ProgressReports reports{events, torch::kCPU};
  const auto begun = std::chrono::steady_clock::now();
  reports.begin();
  reports.spend(training::ProgressReports::Spent::kData, std::chrono::hours{1});
  reports.count(20);
  reports.add(10, 0, sums(30, 5, 20), gradients(), 0.1);
  reports.count(40);
  reports.add(20, 10, sums(30, 5, 40), gradients(), 0.1);
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

class TimeOfATraining : public SmallTraining {};

TEST_F(TimeOfATraining, HasCheckpointsAndWaitingForDataInItsSharesAndInItsRate) {
  auto often = options();
  often.checkpoint_every = std::chrono::seconds{0};  // after every step, which waits for the one before
  RateRecorder events;
  events.of_a_checkpoint = std::chrono::milliseconds{5};
  const std::atomic<bool> stop = false;
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(training::Training(often, events).run(stop));
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  ASSERT_EQ(events.points.size(), 30u) << "one for each step";
  ASSERT_EQ(events.checkpoints, 30);
  double seconds = 0;
  std::map<std::string, double> spent;
  for (const auto& point : events.points) {
    const double time = 20 / point.at("images_per_s");
    seconds += time;
    double shares = 0;
    for (const char* share : {"time/data", "time/checkpoints", "time/evaluation"})
      spent[share] += point.at(share) * time, shares += point.at(share);
    EXPECT_LE(shares, 1 + 1e-9);
  }
  for (const auto& [share, time] : spent) EXPECT_GT(time, 0) << share;
  EXPECT_GE(seconds, 28 * 0.005) << "the last point was said when 28 checkpoints had been waited for";
  EXPECT_LE(seconds, whole);
}

TEST(ProgressReportsTest, ALossThatIsNotFiniteIsSaidAndEndsTheTrainingWithTheFirstStepOfWhichThatIsSo) {
  Recorder events;
  training::ProgressReports reports{events, torch::kCPU};
  reports.add(7, 4, torch::tensor({double{NAN}, 0.0, 20.0, 3.0, 1.0}, torch::kFloat64), gradients(),
              0.1);  // of two ranks
  try {
    reports.say(7);
    ADD_FAILURE() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kAborted);
    EXPECT_STREQ(error.what(), "diverged: the training loss is not finite since step 6");
  }
  EXPECT_EQ(events.points["train/loss"].count(7), 1u);
}

}  // namespace
}  // namespace abl::trainer
