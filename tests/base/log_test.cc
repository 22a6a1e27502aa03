// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace abl {
namespace {

TEST(LogTest, LineBearsTimeAndLevel) {
  testing::internal::CaptureStderr();
  log_info("port {}", 7);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z info port 7\n"));
}

TEST(LogTest, WhatOthersWroteCannotCommandATerminal) {
  testing::internal::CaptureStderr();
  log_info("run 1 failed: {}", "\x1b[31mred\x1b[0m\r\u202eend");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::EndsWith(" info run 1 failed: red end\n"));
}

TEST(LogTest, MessagesBelowTheLevelAreDropped) {
  testing::internal::CaptureStderr();
  set_log_level(LogLevel::kError);
  log_info("dropped");
  log_error("kept");
  set_log_level(LogLevel::kInfo);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("error kept"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
}

}  // namespace
}  // namespace abl
