// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <gtest/gtest.h>
#include <time.h>

#include <limits>

namespace abl::cli {
namespace {

TEST(Format, DurationsKeepTwoUnits) {
  EXPECT_EQ(format_duration(0.042), "42ms");
  EXPECT_EQ(format_duration(0.0999), "0.1s");
  EXPECT_EQ(format_duration(0.42), "0.4s");
  EXPECT_EQ(format_duration(12), "12s");
  EXPECT_EQ(format_duration(59.7), "1m 00s");
  EXPECT_EQ(format_duration(185), "3m 05s");
  EXPECT_EQ(format_duration(8040), "2h 14m");
  EXPECT_EQ(format_duration(86400 * 3 + 3600 * 4), "3d 04h");
}

TEST(Format, AMomentSaysItsDayWhereThatIsAnother) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const Time now{std::chrono::sys_days{std::chrono::year{2026} / 11 / 23} + std::chrono::hours{20}};
  EXPECT_EQ(format_moment(now + std::chrono::hours{2}, now), "22:00");
  EXPECT_EQ(format_moment(now + std::chrono::hours{6}, now), "Tue 02:00");
  EXPECT_EQ(format_moment(now + std::chrono::hours{24 * 30}, now), "Dec 23");
  ablate::v1::Forecast forecast;
  forecast.set_unknown("no trial of row b has completed");
  EXPECT_EQ(forecast_line(forecast, "complete in", now),
            "complete in an unknown time: no trial of row b has completed\n");
  forecast.clear_unknown();
  forecast.set_seconds(7500);
  forecast.set_at_once(2);
  EXPECT_EQ(forecast_line(forecast, "complete in", now),
            "complete in about 2h 05m (22:05): from the rates of its runs, 2.0 at once\n");
  forecast.set_runs(6);
  forecast.set_guessed(1);
  EXPECT_EQ(forecast_line(forecast, "complete in", now),
            "complete in about 2h 05m (22:05): from 6 completed runs, 2.0 at once; 1 trial of rows without a "
            "completed one taken "
            "as the mean of the others\n");
}

TEST(Format, WhatIsUnknownIsADash) {
  EXPECT_EQ(format_duration(-1), "–");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "–");
  EXPECT_EQ(format_eta(std::nullopt), "–");
  EXPECT_EQ(format_rate(0, "steps"), "–");
  EXPECT_EQ(format_age({}, Time{}), "–");
}

TEST(Format, RatesChooseTheUnitOfTimeThatLeavesADigitBeforeThePoint) {
  EXPECT_EQ(format_rate(1234.4, "steps"), "1234 steps/s");
  EXPECT_EQ(format_rate(12.34, "steps"), "12.3 steps/s");
  EXPECT_EQ(format_rate(0.5, "trials"), "30.0 trials/min");
  EXPECT_EQ(format_rate(0.001, "trials"), "3.6 trials/h");
}

TEST(Format, CountsAreGroupedAndPapersUnitsHaveTwoDigits) {
  EXPECT_EQ(format_count(7), "7");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_millions(16'596'480), "16.60");
  EXPECT_EQ(format_billions(4'603'000'000), "4.60");
  EXPECT_EQ(plural(1, "trial"), "1 trial");
  EXPECT_EQ(plural(2000, "trial"), "2,000 trials");
}

}  // namespace
}  // namespace abl::cli
