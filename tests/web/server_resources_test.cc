// SPDX-License-Identifier: Apache-2.0
// What runs took of their machines, over HTTP.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/web/server_fixture.h"

namespace abl::web {
namespace {

using testing::HasSubstr;

class ResourcesTest : public ServerTest {
 protected:
  nlohmann::json of(std::uint32_t run, const std::string& query = "") {
    return get("/api/v1/runs/" + std::to_string(run) + "/resources" + query).json();
  }
  static nlohmann::json series(const nlohmann::json& answer, const std::string& name) {
    for (const auto& each : answer.at("series"))
      if (each.at("name") == name) return each;
    return {};
  }
  const std::uint32_t run = demo_->running().at(0);
};

TEST_F(ResourcesTest, FewSamplesAreAllThere) {
  demo_->sample(4, 0, 120);
  const auto answer = of(4);
  EXPECT_EQ(answer.at("samples"), 60);
  EXPECT_EQ(answer.at("bucket_s"), 0);
  const auto cpu = series(answer, "cpu");
  EXPECT_EQ(cpu.at("unit"), "cores");
  EXPECT_EQ(cpu.at("at_s").size(), 60);
  EXPECT_EQ(cpu.at("at_s")[0], 2);
  EXPECT_TRUE(cpu.at("lows").empty());
  EXPECT_EQ(series(answer, "data_wait").at("means").size(), 30) << "none where the trainer said none";
  EXPECT_EQ(series(answer, "data_wait").at("means")[0], 0.25);
  EXPECT_EQ(series(answer, "gpu").at("means")[0], 0.8);
  EXPECT_EQ(answer.at("use").at("data_wait"), 0.25);
  EXPECT_EQ(answer.at("use").at("peak_memory_bytes"), std::to_string((1024 + 120) << 20));
  EXPECT_TRUE(answer.at("gaps").empty());
}

TEST_F(ResourcesTest, ManySamplesAreInBucketsThatSayHowFarTheyGo) {
  demo_->sample(5, 0, 4000);
  const auto answer = of(5, "?points=50");
  EXPECT_EQ(answer.at("samples"), 2000);
  EXPECT_EQ(answer.at("bucket_s"), 100);
  const auto memory = series(answer, "memory");
  ASSERT_LE(memory.at("at_s").size(), 51U);
  for (std::size_t i = 0; i < memory.at("at_s").size(); ++i) {
    EXPECT_LE(memory.at("lows")[i], memory.at("means")[i]);
    EXPECT_LE(memory.at("means")[i], memory.at("highs")[i]);
  }
  EXPECT_EQ(memory.at("highs").back(), (1024.0 + 4000) * (1 << 20));
  EXPECT_EQ(series(answer, "gpu"), nlohmann::json{}) << "what no sample has is absent";
  const auto near = of(5, "?points=50&from=100&to=120");
  EXPECT_EQ(near.at("samples"), 11);
  EXPECT_EQ(near.at("bucket_s"), 0) << "a closer look has every sample";
  EXPECT_EQ(near.at("use"), answer.at("use")) << "of the whole run";
}

TEST_F(ResourcesTest, WhereNothingWasSampledIsSaid) {
  demo_->sample(4, 0, 20);
  demo_->sample(4, 1000, 20);
  const auto gaps = of(4).at("gaps");
  ASSERT_EQ(gaps.size(), 1);
  EXPECT_EQ(gaps[0].at("from_s"), 20);
  EXPECT_EQ(gaps[0].at("to_s"), 1000);
}

TEST_F(ResourcesTest, ARunWithoutSamplesSaysWhy) {
  const auto answer = of(run);
  EXPECT_FALSE(answer.contains("use"));
  EXPECT_THAT(answer.at("why_none").get<std::string>(), HasSubstr("sample"));
  EXPECT_EQ(get("/api/v1/runs/9999/resources").status, 404);
}

TEST_F(ResourcesTest, WhatCannotBeAskedIsRefused) {
  const std::string path = "/api/v1/runs/4/resources";
  expect_error(get(path + "?points=1"), 400, "INVALID_ARGUMENT", "points");
  expect_error(get(path + "?points=99999"), 400, "INVALID_ARGUMENT", "points");
  expect_error(get(path + "?from=-1"), 400, "INVALID_ARGUMENT", "from");
  expect_error(get(path + "?from=10&to=9"), 400, "INVALID_ARGUMENT", "is before");
  expect_error(get(path + "?width=9"), 400, "INVALID_ARGUMENT", "width");
}

TEST_F(ResourcesTest, ARunsOwnAnswerHasItsUse) {
  EXPECT_FALSE(get("/api/v1/runs/4").json().contains("resources"));
  demo_->sample(4, 0, 120);
  EXPECT_EQ(get("/api/v1/runs/4").json().at("resources").at("samples"), 60);
}

}  // namespace
}  // namespace abl::web
