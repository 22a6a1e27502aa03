// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
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

class JsonLogTest : public testing::Test {
 protected:
  JsonLogTest() { set_log_format(LogFormat::kJson); }
  ~JsonLogTest() override { set_log_format(LogFormat::kText); }

  template <class Log>
  std::string said(Log log) {
    testing::internal::CaptureStderr();
    log();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(JsonLogTest, ALineIsAnObjectWithWhatItIsOf) {
  const std::string name = "gpu-07";
  const auto line = said([&] { log_warning({{"run", 17U}, {"worker", name}}, "run {} is late", 17); });
  ASSERT_EQ(std::ranges::count(line, '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_THAT(json.at("time").get<std::string>(),
              testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"));
  EXPECT_EQ(json.at("level"), "warning");
  EXPECT_EQ(json.at("message"), "run 17 is late");
  EXPECT_EQ(json.at("run"), 17);
  EXPECT_EQ(json.at("worker"), "gpu-07");
  EXPECT_EQ(json.size(), 5U);
}

TEST_F(JsonLogTest, WhatIsNotKnownIsNoMember) {
  const auto json = nlohmann::json::parse(said([] { log_info({{"run", 0}, {"sweep", ""}}, "nothing"); }));
  EXPECT_EQ(json.size(), 3U) << json;
}

TEST_F(JsonLogTest, WhatOthersWroteStaysWithinItsText) {
  const std::string evil = "a\"}\n{\"level\":\"error\",\t\\ \x01\xff\x1b[2J\u202e";
  const auto line = said([&] { log_info({{"sweep", evil}}, "{}", evil); });
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json.at("level"), "info");
  EXPECT_EQ(json.at("message"), "a\"} {\"level\":\"error\",\t\\ \uFFFD");
  EXPECT_EQ(json.at("sweep"), json.at("message"));
}

TEST_F(JsonLogTest, LongMessagesAreCutBetweenCharacters) {
  std::string text = "x";
  for (int i = 0; i < 10000; ++i) text += "\u00e9";
  const auto json = nlohmann::json::parse(said([&] { log_info({{"sweep", text}}, "{}", text); }));
  const auto message = json.at("message").get<std::string>();
  EXPECT_LE(message.size(), 8010U);
  EXPECT_THAT(message, testing::EndsWith("\u00e9 …"));
  EXPECT_LE(json.at("sweep").get<std::string>().size(), 510U);
}

TEST(LogTest, ALongLineOfTextIsCutToo) {
  testing::internal::CaptureStderr();
  log_info("{}", std::string(1 << 20, 'x'));
  EXPECT_LE(testing::internal::GetCapturedStderr().size(), 8100U);
}

}  // namespace
}  // namespace abl
