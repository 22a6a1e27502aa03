// SPDX-License-Identifier: Apache-2.0
#include "protocol/metric_source.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abl::protocol {
namespace {

using nlohmann::json;

TEST(MetricSource, IsReadAsItIsWrittenAndSaysNothingThatIsAsUsual) {
  const std::vector<MetricSource> sources{
      {.patterns = {"epoch (?<epoch>\\d+) acc (?<acc>.*)"}, .names = {{"acc", "val/top1"}}},
      {.patterns = {"a(?<a>.)", "b(?<b>.)"},
       .step = "count",
       .split = "train",
       .stream = MetricSource::Stream::kStderr,
       .take = MetricSource::Take::kFirst},
      {.kind = MetricSource::Kind::kFile, .path = "out/*.csv", .names = {{"précision", "acc"}}},
      {.kind = MetricSource::Kind::kTensorboard, .path = "runs"}};
  const json written = to_json(sources);
  EXPECT_EQ(metric_sources(written), sources);
  EXPECT_EQ(written[0], json::parse(R"json({"pattern": ["epoch (?<epoch>\\d+) acc (?<acc>.*)"],
                                        "names": [["acc", "val/top1"]]})json"));
  EXPECT_EQ(written[3], json::parse(R"({"tensorboard": "runs"})"));
}

TEST(MetricSource, WhatNoFileSaysIsRefused) {
  for (const char* text : {"[{}]", R"([{"pattern": ["a"], "file": "b"}])", R"([{"pattern": 3}])", "[4]",
                           R"([{"file": "b", "stream": "stdin"}])", R"([{"file": "b", "names": [["a"]]}])"})
    EXPECT_THROW(metric_sources(json::parse(text)), Error) << text;
}

}  // namespace
}  // namespace abl::protocol
