// SPDX-License-Identifier: Apache-2.0
#include "storage/log_patience.h"

#include <gtest/gtest.h>

namespace abl::storage {
namespace {

using namespace std::chrono_literals;

TEST(LogPatience, WaitsBrieflyAFewTimesThenLongAndThenSeldomer) {
  LogPatience patience{5s};
  LogPatience::TimePoint now{1h};
  Milliseconds pause = 50s;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(patience.at(now), Milliseconds{100}) << "the others go on in between";
      EXPECT_FALSE(patience.failed(now));
    }
    EXPECT_EQ(patience.at(now), Milliseconds{5s});
    EXPECT_TRUE(patience.failed(now));
    EXPECT_EQ(patience.at(now + pause - 1ms), std::nullopt);
    now += pause;
    pause = std::min<Milliseconds>(2 * pause, 10min);
  }
  EXPECT_EQ(pause, Milliseconds{10min});
  patience.succeeded();
  for (int i = 0; i < 11; ++i) (void)patience.failed(now);
  EXPECT_EQ(patience.at(now + 50s), Milliseconds{100}) << "a new reader is a new case";
}

TEST(LogPatience, IsNeverLongerThanItMayBe) { EXPECT_EQ(LogPatience{1ms}.at({}), Milliseconds{1}); }

}  // namespace
}  // namespace abl::storage
