// SPDX-License-Identifier: Apache-2.0
#include "cli/budget.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <ctime>

#include "base/error.h"

namespace abl::cli {
namespace {

/// A moment by UTC.
Time at(int year, int month, int day, int hour, int minute = 0) {
  std::tm utc{};
  utc.tm_year = year - 1900, utc.tm_mon = month - 1, utc.tm_mday = day, utc.tm_hour = hour,
  utc.tm_min = minute;
  return std::chrono::floor<Milliseconds>(std::chrono::system_clock::from_time_t(::timegm(&utc)));
}

class UntilTest : public testing::Test {
 protected:
  UntilTest() { zone("CET-1CEST,M3.5.0,M10.5.0/3"); }  // as in Berlin
  ~UntilTest() override { zone(nullptr); }
  static void zone(const char* name) {
    name ? ::setenv("TZ", name, 1) : ::unsetenv("TZ");
    ::tzset();
  }
};

TEST_F(UntilTest, ATimeIsTodayOrTomorrowWhereItIsPast) {
  EXPECT_EQ(moment_of("18:00", at(2026, 11, 23, 12)), at(2026, 11, 23, 17));
  EXPECT_EQ(moment_of("18:00", at(2026, 11, 23, 17)), at(2026, 11, 24, 17));
  EXPECT_EQ(moment_of("0:30", at(2026, 12, 31, 12)), at(2026, 12, 31, 23, 30));
}

TEST_F(UntilTest, OverAChangeOfTheClocksItIsWhatTheyShow) {
  EXPECT_EQ(moment_of("18:00", at(2026, 3, 28, 20)), at(2026, 3, 29, 16)) << "summer time by then";
  EXPECT_EQ(moment_of("18:00", at(2026, 10, 24, 20)), at(2026, 10, 25, 17));
}

TEST_F(UntilTest, AnHourThatTheClocksShowTwiceIsTheFirstThatIsStillToCome) {
  EXPECT_EQ(moment_of("02:30", at(2026, 10, 24, 20)), at(2026, 10, 25, 0, 30));
  EXPECT_EQ(moment_of("02:30", at(2026, 10, 25, 0, 45)), at(2026, 10, 25, 1, 30));
}

TEST_F(UntilTest, AnHourThatTheClocksSkipIsThereAllTheSame) {
  const Time moment = moment_of("02:30", at(2026, 3, 28, 20));
  EXPECT_GE(moment, at(2026, 3, 29, 0, 30));
  EXPECT_LE(moment, at(2026, 3, 29, 1, 30));
}

TEST_F(UntilTest, ADateIsTakenAsItIs) {
  EXPECT_EQ(moment_of("2026-12-01 08:15", at(2026, 11, 23, 12)), at(2026, 12, 1, 7, 15));
  EXPECT_THROW(moment_of("2026-11-01 08:15", at(2026, 11, 23, 12)), Error) << "it is past";
}

TEST_F(UntilTest, WhatIsNoTimeIsRefused) {
  for (const char* text : {"", "18", "18:0", "24:00", "18:60", "six", "18:00:00", "2026-02-30 12:00",
                           "2026-11-24", "2026/11/24 12:00", "-1:00", " 18:00"})
    EXPECT_THROW(moment_of(text, at(2026, 1, 1, 12)), Error) << text;
}

}  // namespace
}  // namespace abl::cli
