// SPDX-License-Identifier: Apache-2.0
#include "protocol/checkpoint_files.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace abl::protocol {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json facts() {
  return json::parse(
      facts_text({.config_hash = "ab",
                  .step = 400,
                  .evaluated = 390,
                  .loss_sum = 1.5,
                  .correct = 3,
                  .seen = 64,
                  .gradients = {2.5, 4, 1},
                  .best = 75.5,
                  .to_beat = 0.25,
                  .waited = 2,
                  .machine = {.torch = "2.13.0", .device = "cpu", .instructions = "AVX2", .threads = 2},
                  .weights = {{"init", "cd"}},
                  .model = "{}"}));
}

std::string refusal(const json& said) {
  try {
    read_checkpoint_facts(said.dump(), "c.safetensors");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss);
    return error.what();
  }
  return "";
}

TEST(CheckpointFacts, ReadAsTheyWereWritten) {
  const CheckpointFacts read = read_checkpoint_facts(facts().dump(), "c.safetensors");
  EXPECT_EQ(facts_text(read), facts().dump());
  EXPECT_EQ(read.step, 400);
  EXPECT_EQ(read.best, 75.5);
  EXPECT_EQ(read.gradients, (std::array<double, 3>{2.5, 4, 1}));
  EXPECT_EQ(read.to_beat, 0.25);
  EXPECT_EQ(read.waited, 2);
  EXPECT_EQ(read.weights.at("init"), "cd");
}

TEST(CheckpointFacts, WhatOlderTrainersLeftOutHasItsDefault) {
  json said = facts();
  for (const char* key : {"best", "weights", "model", "data_fingerprint", "gradients", "to_beat", "waited"})
    said.erase(key);
  said["machine"].erase("ranks");
  said["machine"].erase("deterministic");
  const CheckpointFacts read = read_checkpoint_facts(said.dump(), "c.safetensors");
  EXPECT_EQ(read.best, std::nullopt);
  EXPECT_EQ(read.gradients, (std::array<double, 3>{}));
  EXPECT_EQ(read.to_beat, std::nullopt);
  EXPECT_EQ(read.machine.ranks, 1);
  EXPECT_TRUE(read.machine.deterministic);
}

TEST(CheckpointFacts, EachWrongKeyIsNamedWithWhatItShouldBe) {
  for (const auto& [key, value] : std::multimap<std::string, json>{{"step", -1},
                                                                   {"step", 1e300},
                                                                   {"seen", 18446744073709551615u},
                                                                   {"evaluated", "3"},
                                                                   {"loss_sum", nullptr},
                                                                   {"best", "75"},
                                                                   {"gradients", {1, 2}},
                                                                   {"gradients", {1, 2, "3"}},
                                                                   {"to_beat", "75"},
                                                                   {"waited", -1},
                                                                   {"model", 3},
                                                                   {"weights", {{"a", 1}}},
                                                                   {"machine", 5}}) {
    json said = facts();
    said[key] = value;
    EXPECT_THAT(refusal(said), HasSubstr(key == "machine" ? "no object" : "'" + key + "'"));
  }
  json said = facts();
  said["machine"]["threads"] = 0;
  EXPECT_THAT(refusal(said), HasSubstr("'threads' is 0; expected 1 to"));
  EXPECT_THAT(refusal(json::array()), HasSubstr("its facts are no object"));
}

TEST(CheckpointFacts, AnotherFormatIsNoDamage) {
  json said = facts();
  said["format"] = 2;
  try {
    read_checkpoint_facts(said.dump(), "c.safetensors");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("has format 2, this trainer reads 1"));
  }
}

}  // namespace
}  // namespace abl::protocol
