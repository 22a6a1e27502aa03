// SPDX-License-Identifier: Apache-2.0
#include "base/fail_point.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "base/enum_names.h"
#include "base/error.h"

namespace abl {
namespace {

using testing::HasSubstr;

struct FailPointTest : testing::Test {
  ~FailPointTest() override { set_fail_points(""); }

  static std::string complaint_about(const std::string& text) {
    try {
      set_fail_points(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      return error.what();
    }
    return "taken";
  }
};
using FailPointDeathTest = FailPointTest;

TEST_F(FailPointTest, NothingHappensWhereNothingIsSaid) {
  fail_point(FailPoint::kBeforeCommit);
  set_fail_points("scheduler.submit=error");
  fail_point(FailPoint::kBeforeCommit);
  set_fail_points("");
  fail_point(FailPoint::kSubmit);
}

TEST_F(FailPointTest, AnErrorIsThrownAtTheNthTimeAlone) {
  set_fail_points("scheduler.before-commit=error@2");
  fail_point(FailPoint::kBeforeCommit);
  EXPECT_THROW(fail_point(FailPoint::kBeforeCommit), Error);
  fail_point(FailPoint::kBeforeCommit);
}

TEST_F(FailPointTest, WithoutANumberItIsEachTime) {
  set_fail_points("scheduler.submit=error,scheduler.before-commit=error");
  for (int i = 0; i < 3; ++i) EXPECT_THROW(fail_point(FailPoint::kBeforeCommit), Error);
  EXPECT_THROW(fail_point(FailPoint::kSubmit), Error);
}

TEST_F(FailPointTest, AFullDiskIsToldAsTheSystemTellsIt) {
  set_fail_points("worker.before-spool-write=enospc");
  try {
    fail_point(FailPoint::kBeforeSpoolWrite);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted);
    EXPECT_THAT(error.what(), HasSubstr("No space left on device"));
  }
}

TEST_F(FailPointTest, ADelayTakesAsLongAsItSays) {
  set_fail_points("scheduler.after-commit=delay:20");
  const auto before = std::chrono::steady_clock::now();
  fail_point(FailPoint::kAfterCommit);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds{20});
}

TEST_F(FailPointTest, AProbabilityOfNoneIsNeverAndOfOneAlways) {
  set_fail_points("scheduler.before-commit=error:0,scheduler.submit=error:1");
  for (int i = 0; i < 100; ++i) fail_point(FailPoint::kBeforeCommit);
  for (int i = 0; i < 100; ++i) EXPECT_THROW(fail_point(FailPoint::kSubmit), Error);
}

TEST_F(FailPointDeathTest, AKillNeedsNobodysConsent) {
  set_fail_points("worker.before-end=kill");
  EXPECT_EXIT(fail_point(FailPoint::kBeforeEnd), testing::KilledBySignal(SIGKILL),
              "fail point worker.before-end: kill");
}

TEST_F(FailPointTest, WhatIsMisspeltIsNamedInOneLineWithTheNearest) {
  EXPECT_THAT(complaint_about("scheduler.before-comit=kill"), HasSubstr("'scheduler.before-commit'"));
  EXPECT_THAT(complaint_about("scheduler.submit=kil"), HasSubstr("did you mean 'kill'"));
  EXPECT_THAT(complaint_about("scheduler.submit"), HasSubstr("expected kill, stop, delay, error or enospc"));
  EXPECT_THAT(complaint_about("scheduler.submit=delay"), HasSubstr("a number of milliseconds"));
  EXPECT_THAT(complaint_about("scheduler.submit=kill@0"), HasSubstr("from 1 on"));
  EXPECT_THAT(complaint_about("scheduler.submit=kill@x"), HasSubstr("a number from 1 on"));
  EXPECT_THAT(complaint_about("scheduler.submit=kill:1.5"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint_about("scheduler.submit=kill:0.5 "), HasSubstr("' ' was not expected"));
  EXPECT_THAT(complaint_about("scheduler.after-commit=error"), HasSubstr("nothing can fail at"));
  EXPECT_THAT(complaint_about("scheduler.submit=kill,"), "taken") << "a comma at the end says nothing";
}

TEST_F(FailPointTest, OfWhatIsNotTakenNothingHolds) {
  complaint_about("scheduler.submit=error,worker.before-end=kil");
  fail_point(FailPoint::kSubmit);
}

TEST_F(FailPointTest, EveryPlaceCanBeNamed) {
  for (const FailPoint place : values_of<FailPoint>())
    EXPECT_EQ(complaint_about(std::string{name_of(place)} + "=kill@1"), "taken");
}

}  // namespace
}  // namespace abl
