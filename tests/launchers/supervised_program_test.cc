// SPDX-License-Identifier: Apache-2.0
#include "launchers/supervised_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace abl::launchers {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr ChildExit kKilled{.code = 0, .signal = 9};
constexpr ChildExit kFailed{.code = 1, .signal = 0};
constexpr ChildExit kBadInput{.code = 2, .signal = 0};

TEST(RestartPolicy, PausesDoubleWithEachQuickFailureUntilItGivesUp) {
  RestartPolicy policy;
  EXPECT_EQ(policy.ended(1s, kFailed), 250ms);
  EXPECT_EQ(policy.ended(1s, kKilled), 500ms);
  EXPECT_EQ(policy.ended(1s, kFailed), 1000ms);
  EXPECT_EQ(policy.ended(1s, kFailed), 2000ms);
  EXPECT_EQ(policy.ended(1s, kFailed), std::nullopt);
}

TEST(RestartPolicy, ALongLifeForgivesWhatWasBefore) {
  RestartPolicy policy;
  for (int failure = 0; failure < 4; ++failure) policy.ended(1s, kFailed);
  EXPECT_EQ(policy.ended(60s, kKilled), 250ms);
  EXPECT_EQ(policy.ended(1s, kKilled), 250ms);
}

TEST(RestartPolicy, BadInputIsGivenUpAtOnce) {
  RestartPolicy policy;
  EXPECT_EQ(policy.ended(60s, kBadInput), std::nullopt);
}

class SupervisedProgramTest : public testing::Test {
 protected:
  ~SupervisedProgramTest() override { std::filesystem::remove_all(folder_); }

  /// Ticks at `now` until the child's end has been noticed.
  std::string tick_until_told(SupervisedProgram& program, Time now) {
    for (;;) {
      if (const auto happened = program.tick(now)) return *happened;
      std::this_thread::yield();
    }
  }
  SupervisedProgram shell(const std::string& script) { return {"program", {"sh", "-c", script}, log_}; }

  std::filesystem::path folder_ = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "ablate-supervised-XXXXXX").string();
    return std::filesystem::path{mkdtemp(pattern.data())};
  }();
  std::filesystem::path log_ = folder_ / "program.log";
  Time start_{1'000'000ms};
};

TEST_F(SupervisedProgramTest, AProgramThatEndsIsStartedAgainWhenItsPauseIsOver) {
  auto program = shell("echo started; exit 1");
  program.start(start_);
  EXPECT_THAT(tick_until_told(program, start_),
              HasSubstr("program ended (exit code 1); starting it again in 250 ms"));
  EXPECT_EQ(program.tick(start_ + 249ms), std::nullopt);
  EXPECT_EQ(program.tick(start_ + 250ms), "program started again");
  EXPECT_THAT(tick_until_told(program, start_ + 251ms), HasSubstr("in 500 ms"));
  EXPECT_EQ(read_file(log_), "started\nstarted\n");
}

TEST_F(SupervisedProgramTest, WhatIsGivenUpSaysItsLastLines) {
  write_file_atomically(log_, "of an earlier day\n");
  auto program = shell("printf 'no folder /data \\377\\n \\n' >&2; exit 2");
  program.start(start_);
  try {
    tick_until_told(program, start_);
    FAIL() << "exit code 2 must be given up";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("program ended (exit code 2)"));
    EXPECT_THAT(error.what(), testing::EndsWith("\n  no folder /data \uFFFD"));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("of an earlier day")));
  }
}

TEST_F(SupervisedProgramTest, StopInsistsWhenItIsToHurry) {
  auto program = shell("trap '' TERM; while :; do sleep 1; done");
  program.start(start_);
  program.stop(1h, [] { return true; });
  EXPECT_EQ(program.tick(start_ + 1h), std::nullopt) << "a stopped program is not started again";
}

}  // namespace
}  // namespace abl::launchers
