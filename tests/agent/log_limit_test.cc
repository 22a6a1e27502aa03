// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/log_limit.h"

#include <gmock/gmock.h>

namespace abl::agent {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TEST(LogLimit, ALogWithinItsLimitPassesByteForByte) {
  LogLimit log{100};
  std::string all = log.admit("first\n") + log.admit("") + log.admit("second\n");
  EXPECT_EQ(all, "first\nsecond\n");
  EXPECT_EQ(log.rest(), "");
}

TEST(LogLimit, WhatWouldJustFitIsWholeAtTheEnd) {
  LogLimit log{200};
  const std::string text = lines(0, 25);  // 190 bytes
  const std::string head = log.admit(text);
  EXPECT_THAT(head, StartsWith("line 0\n"));
  const std::string rest = log.rest();
  EXPECT_THAT(rest, testing::Not(HasSubstr("left out")));
  const auto note = head.find("[worker]");
  ASSERT_NE(note, std::string::npos);
  EXPECT_EQ(head.substr(0, note) + rest, text);
}

TEST(LogLimit, BeyondItTheMiddleIsLeftOutAtLineEndsAndSaidSo) {
  LogLimit log{1000};
  std::string all;
  for (int i = 0; i < 1000; ++i) all += log.admit(lines(i, i + 1));
  const std::string rest = log.rest();
  EXPECT_LT(all.size() + rest.size(), 1300U);
  EXPECT_THAT(rest, StartsWith("[worker] "));
  EXPECT_THAT(rest, EndsWith("line 998\nline 999\n"));
  const auto note = rest.find('\n');
  EXPECT_THAT(rest.substr(note + 1), StartsWith("line "));
  const std::size_t left_out = std::stoul(rest.substr(9));
  const std::size_t head = all.find("[worker]");
  EXPECT_EQ(head + left_out + (rest.size() - note - 1), lines(0, 1000).size())
      << "every byte is accounted for";
}

TEST(LogLimit, ALineWithoutAnEndIsCutWhereItHasTo) {
  LogLimit log{1000};
  std::string head = log.admit(std::string(5000, 'x'));
  EXPECT_EQ(head.find("\n[worker]"), 500U);
  const std::string rest = log.rest();
  EXPECT_THAT(rest, StartsWith("[worker] 4000 bytes of the log were left out here\nxxx"));
  EXPECT_EQ(rest.size(), std::string{"[worker] 4000 bytes of the log were left out here\n"}.size() + 500);
}

}  // namespace
}  // namespace abl::agent
