// SPDX-License-Identifier: Apache-2.0
#include "protocol/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace abl::protocol {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Pair;

/// What is read of a line that was written.
template <class E>
E said(const E& event) {
  const std::string line = to_line(event);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  return std::get<E>(parse_event(json::parse(line)).value());
}

TEST(Event, IsReadAsItWasWritten) {
  const auto start = said(Start{.total_steps = 400,
                                .images_per_step = 64,
                                .resumed_step = 200,
                                .bit_exact = true,
                                .data_fingerprint = "shapes-1",
                                .environment = {{"threads", 2}}});
  EXPECT_EQ(start.total_steps, 400);
  EXPECT_EQ(start.images_per_step, 64);
  EXPECT_EQ(start.resumed_step, 200);
  EXPECT_TRUE(start.bit_exact);
  EXPECT_EQ(start.data_fingerprint, "shapes-1");
  EXPECT_EQ(start.environment.dump(), R"({"threads":2})");

  const double infinity = std::numeric_limits<double>::infinity();
  const auto metric = said(Metric{.step = 7, .values = {{"a", 0.1}, {"b", -infinity}}});
  EXPECT_EQ(metric.step, 7);
  EXPECT_THAT(metric.values, ElementsAre(Pair("a", 0.1), Pair("b", -infinity)));

  const auto log = said(Log{.level = LogLevel::kWarning, .text = "two\nlines"});
  EXPECT_EQ(log.level, LogLevel::kWarning);
  EXPECT_EQ(log.text, "two\nlines");

  const auto checkpoint = said(Checkpoint{.step = 9, .path = "/r/c-9", .sha256 = "ab"});
  EXPECT_EQ(checkpoint.step, 9);
  EXPECT_EQ(checkpoint.path, "/r/c-9");
  EXPECT_EQ(checkpoint.sha256, "ab");

  const auto end = said(End{.status = End::Status::kFailed,
                            .reason = "full",
                            .retryable = false,
                            .fault = Fault{Fault::Part::kDisk, 1'900'000}});
  EXPECT_EQ(end.status, End::Status::kFailed);
  EXPECT_EQ(end.reason, "full");
  EXPECT_FALSE(end.retryable);
  EXPECT_EQ(end.fault->part, Fault::Part::kDisk);
  EXPECT_EQ(end.fault->needed_bytes, 1'900'000U);
}

TEST(Event, SaysWhatTheProtocolsPageSays) {
  EXPECT_EQ(to_line(Metric{.step = 120, .values = {{"train/loss", 2.31}, {"val/top1", std::nan("")}}}),
            "{\"event\":\"metric\",\"step\":120,\"values\":{\"train/loss\":2.31,\"val/top1\":\"NaN\"}}\n");
  EXPECT_EQ(to_line(End{.status = End::Status::kCompleted, .reason = "", .retryable = true, .fault = {}}),
            "{\"event\":\"end\",\"status\":\"completed\"}\n");
  EXPECT_EQ(to_line(Log{.level = LogLevel::kInfo, .text = "\xff"}),
            "{\"event\":\"log\",\"level\":\"info\",\"text\":\"\uFFFD\"}\n")
      << "what is no text stops no line";
}

TEST(Event, MayLeaveOutWhatHasADefault) {
  const auto start = std::get<Start>(*parse_event({{"event", "start"}, {"resumed_step", 3.0}}));
  EXPECT_EQ(start.resumed_step, 3);
  EXPECT_FALSE(start.bit_exact) << "it went on and did not say so";
  EXPECT_TRUE(start.environment.is_null());
  EXPECT_EQ(std::get<Log>(*parse_event({{"event", "log"}, {"text", "t"}})).level, LogLevel::kInfo);
  const auto end = std::get<End>(*parse_event({{"event", "end"}, {"status", "failed"}}));
  EXPECT_TRUE(end.retryable);
  EXPECT_FALSE(end.fault);
}

TEST(Event, KeepsALevelOfAnotherNameInTheText) {
  const auto log = std::get<Log>(*parse_event({{"event", "log"}, {"level", "fatal"}, {"text", "t"}}));
  EXPECT_EQ(log.level, LogLevel::kInfo);
  EXPECT_EQ(log.text, "fatal: t");
}

TEST(Event, OfAnotherNameIsNone) {
  EXPECT_FALSE(parse_event({{"event", "epoch"}, {"number", 3}}));
  EXPECT_FALSE(parse_event({{"event", 3}}));
  EXPECT_FALSE(parse_event({{"step", 3}}));
  EXPECT_FALSE(parse_event(json::array()));
}

TEST(Event, NamesTheKeyThatIsWrong) {
  const auto wrong = [](const json& event) -> std::string {
    try {
      parse_event(event);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_EQ(wrong({{"event", "metric"}, {"step", -1}, {"values", json::object()}}),
            "\"step\" must be a whole number from 0");
  EXPECT_EQ(wrong({{"event", "metric"}, {"step", 1}, {"values", {{"a", "high"}}}}),
            "\"values.a\" must be a number, NaN, Infinity or -Infinity");
  EXPECT_EQ(wrong({{"event", "end"}, {"status", "done"}}), "\"status\" must be completed, stopped or failed");
  EXPECT_EQ(wrong({{"event", "end"}, {"status", "failed"}, {"fault", "disc"}}),
            "\"fault\" must be disk, device, data or file");
  EXPECT_EQ(wrong({{"event", "checkpoint"}, {"step", 1}}), "\"path\" must be a text");
}

}  // namespace
}  // namespace abl::protocol
