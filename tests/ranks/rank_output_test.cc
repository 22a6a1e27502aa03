// SPDX-License-Identifier: Apache-2.0
// Ranks that print what no trainer prints.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "worker/trainer/ranks/supervisor.h"

namespace abl::ranks {
namespace {

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream{"/proc/self/statm"} >> all >> resident;
  return resident * 4096;
}

TEST(RankOutputTest, ALineThatDoesNotEndTakesNoMemoryAndHidesNoEnd) {
  RankOutput output{1, nullptr};
  const std::string piece(64 << 10, '\0');
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 4096; ++i) output.read_stdout(piece);
  EXPECT_LT(resident_bytes(), before + (32 << 20)) << "of 256 MiB";
  output.read_stdout("\n\xff\xfe{\"event\":\n{\"event\":\"end\",\"status\":\"comp");
  output.read_stdout("leted\"}\n");
  ASSERT_TRUE(output.said_end());
  EXPECT_EQ(output.said_end()->status, protocol::End::Status::kCompleted);
}

TEST(RankOutputTest, OneThatNeverStopsPrintingHoldsNobodyUp) {
  RankProcess rank{1, {"/bin/sh", "-c", "exec cat /dev/zero"}, nullptr};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  for (int looks = 0; looks < 20; ++looks) rank.look();  // each ends
  EXPECT_FALSE(rank.exit());
  rank.kill();
  while (!rank.exit() && std::chrono::steady_clock::now() < deadline) rank.look();
  EXPECT_TRUE(rank.exit());
}

}  // namespace
}  // namespace abl::ranks
