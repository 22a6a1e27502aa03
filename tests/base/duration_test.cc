// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <gtest/gtest.h>

namespace abl {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsAWholeNumberAndAUnit) {
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("10m"), 600s);
  EXPECT_EQ(parse_duration("8h"), 8h);
  EXPECT_EQ(parse_duration("30d"), 720h);
  EXPECT_EQ(parse_duration("2w"), 336h);
  EXPECT_EQ(parse_duration("366000d"), 24h * 366'000);
}

TEST(Duration, IsNothingElse) {
  for (const char* text : {"", "s", "5", "-5s", "+5s", "1.5h", "5 m", " 5m", "5m ", "5min", "5M", "5µs",
                           "never", "366001d", "99999999999999999999s", "9223372036854775807w"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

}  // namespace
}  // namespace abl
