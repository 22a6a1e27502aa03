// SPDX-License-Identifier: Apache-2.0
#include "webhooks/happening.h"

#include <gmock/gmock.h>

namespace abl::webhooks {
namespace {

using nlohmann::json;

Happening failed() {
  return {.event = Event::kRowFailed,
          .sweep = "s<b>",
          .owner = "vera",
          .text = "s<b>: a & b failed",
          .page = "/runs/7",
          .time = Time{Milliseconds{1'790'000'000'250}},
          .details = {{"failed", 1}},
          .id = "3f2a-1-2-row-failed"};
}

TEST(Happening, ItsJsonHasEverything) {
  const Message message =
      message_of(failed(), {.name = "lab", .url = {}, .events = {}, .sweeps = {}}, "http://127.0.0.1:8571/");
  EXPECT_EQ(json::parse(message.body), json::parse(R"({"event": "row-failed", "id": "3f2a-1-2-row-failed",
    "time": "2026-09-21T14:13:20.250Z", "sweep": "s<b>", "owner": "vera", "text": "s<b>: a & b failed",
    "url": "http://127.0.0.1:8571/runs/7", "failed": 1})"));
  EXPECT_EQ(message.event, "row-failed");
  EXPECT_EQ(message.id, "3f2a-1-2-row-failed");
}

TEST(Happening, AChatGetsItsTextAndTheLinkThatTheFileSays) {
  const Webhook chat{.name = "lab",
                     .url = {},
                     .events = {},
                     .sweeps = {},
                     .body = Body::kSlack,
                     .secret = {},
                     .ca = {},
                     .dashboard = "https://head:8571"};
  EXPECT_EQ(
      json::parse(message_of(failed(), chat, "http://127.0.0.1:8571").body),
      json::parse(R"({"text": "s&lt;b&gt;: a &amp; b failed\n<https://head:8571/runs/7|Open in ablate>"})"));
}

TEST(Happening, AChatGetsAsManyWholeLinesAsItTakes) {
  Happening many = failed();
  many.text = "s: 30 trials failed";
  for (int i = 0; i < 30; ++i) many.text += fmt::format("\nrow {}: {}", i, std::string(90, 'x'));
  const Webhook chat{.name = "lab", .url = {}, .events = {}, .sweeps = {}, .body = Body::kSlack};
  const std::string text = json::parse(message_of(many, chat, "").body).at("text");
  EXPECT_LT(text.size(), 1600u);
  EXPECT_TRUE(text.starts_with("s: 30 trials failed\nrow 0: x"));
  EXPECT_TRUE(text.ends_with("xxx"));
}

TEST(Happening, WithoutADashboardThereIsNoLink) {
  EXPECT_FALSE(
      json::parse(message_of(failed(), {.name = "lab", .url = {}, .events = {}, .sweeps = {}}, "").body)
          .contains("url"));
}

TEST(Happening, WhatAProgramPrintedNeedNotBeUtf8) {
  Happening happening = failed();
  happening.text = "bad \xff byte";
  EXPECT_NO_THROW(
      json::parse(message_of(happening, {.name = "lab", .url = {}, .events = {}, .sweeps = {}}, "").body));
}

}  // namespace
}  // namespace abl::webhooks
