// SPDX-License-Identifier: Apache-2.0
#include "protocol/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace abl::protocol {
namespace {

using testing::ElementsAre;

TEST(CommandLine, WhatIsNotGivenIsLeftOut) {
  EXPECT_THAT(
      (TrainCommand{.config = "c", .run_dir = "r", .threads = 2, .device = "cpu", .ranks = 1}.arguments()),
      ElementsAre("train", "--config", "c", "--run-dir", "r", "--threads", "2", "--device", "cpu"));
  EXPECT_THAT((DataCommand{.what = "format", .root = "/data", .open = true}.arguments()),
              ElementsAre("data", "format", "--root", "/data", "--open"));
  EXPECT_THAT(VersionCommand{}.arguments(), ElementsAre("--version"));
}

TEST(CommandLine, GivesAllThatIsSaid) {
  const TrainCommand train{.config = "c",
                           .run_dir = "r",
                           .resume = "x",
                           .resume_sha256 = "ab",
                           .restart_if_lost = true,
                           .data_root = "/data",
                           .weights = {{"a", "/a"}, {"b", "/b=c"}},
                           .threads = 4,
                           .device = "cuda",
                           .ranks = 2};
  EXPECT_THAT(train.arguments(),
              ElementsAre("train", "--config", "c", "--run-dir", "r", "--resume", "x", "--resume-sha256",
                          "ab", "--restart-if-lost", "--data-root", "/data", "--weights", "a=/a", "--weights",
                          "b=/b=c", "--threads", "4", "--device", "cuda", "--ranks", "2"));
  const VerifyCommand verify{
      .config = "c", .to = "t", .points = "p", .from = "f", .deterministic = true, .json = true};
  EXPECT_THAT(verify.arguments(), ElementsAre("verify", "--config", "c", "--to", "t", "--points", "p",
                                              "--from", "f", "--deterministic", "--json"));
  EXPECT_THAT(with_program("/bin/trainer", describe_arguments()),
              ElementsAre("/bin/trainer", "describe", "--stdin", "--json"));
  EXPECT_THAT((VersionCommand{.json = true, .try_gpus = 2}.arguments()),
              ElementsAre("--version", "--json", "--try-gpus", "2"));
}

}  // namespace
}  // namespace abl::protocol
