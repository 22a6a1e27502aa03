// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checked_tensors.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/training/checkpoint.h"

namespace abl::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kDataLoss) << error.what();
    return error.what();
  }
  return {};
}

class CheckedTensorsTest : public testing::Test {
 protected:
  static bool same(const models::TensorFile& one, const models::TensorFile& other) {
    if (one.metadata != other.metadata || one.tensors.size() != other.tensors.size()) return false;
    return std::ranges::all_of(one.tensors, [&](const auto& named) {
      const auto found = other.tensors.find(named.first);
      return found != other.tensors.end() && torch::equal(named.second, found->second);
    });
  }
  TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "some.safetensors";
  const models::TensorFile content_{
      .tensors = {{"a", torch::arange(40).to(torch::kFloat).t()}, {"b", torch::ones({3}, torch::kLong)}},
      .metadata = {{"ablate", R"({"step":400})"}}};
};

TEST_F(CheckedTensorsTest, WhatWasWrittenIsRead) {
  training::write_checked(file_, content_);
  EXPECT_TRUE(same(training::read_checked(file_), content_));
}

TEST_F(CheckedTensorsTest, EveryFlippedBitIsFoundOrChangesNothing) {
  training::write_checked(file_, content_);
  const std::string good = read_file(file_);
  std::size_t found = 0;
  for (std::size_t byte = 0; byte < good.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[byte] = static_cast<char>(bad[byte] ^ 1 << bit);
      images::write(file_, bad);
      try {
        // the entry's own name: then the file is as one that has none
        EXPECT_TRUE(same(training::read_checked(file_), content_) ||
                    bad.find("\"crc32\"") == std::string::npos)
            << "bit " << bit << " of byte " << byte;
      } catch (const Error&) {
        ++found;
      }
    }
  EXPECT_GT(found, 8 * good.size() / 2);
}

TEST_F(CheckedTensorsTest, FilesOfOtherProgramsAndOlderOnesAreReadAsTheyAre) {
  models::write_safetensors(file_, content_);
  EXPECT_TRUE(same(training::read_checked(file_), content_));
}

TEST_F(CheckedTensorsTest, ATensorThatWasAddedOrRemovedIsNamed) {
  training::write_checked(file_, content_);
  auto more = models::read_safetensors(file_), less = more;
  more.tensors["c"] = torch::zeros({1});
  less.tensors.erase("a");
  models::write_safetensors(file_, more);
  EXPECT_THAT(refusal_of([&] { training::read_checked(file_); }), HasSubstr("tensor 'c' has no CRC-32"));
  models::write_safetensors(file_, less);
  EXPECT_THAT(refusal_of([&] { training::read_checked(file_); }), HasSubstr("tensor 'a' is missing"));
}

using DamagedCheckpointTest = SmallTraining;

TEST_F(DamagedCheckpointTest, AFlippedBitOfAWeightIsFoundWithoutADigest) {
  Recorder run;
  run.stop_at = 3;
  auto stopped = options();
  stopped.trial.recipe.ema = 0.9;
  training::Training(stopped, run).run(run.stop);
  auto bytes = read_file(run.newest);
  auto& byte = bytes[bytes.size() / 2];  // of the optimiser's state or a weight: they are most of it
  byte = static_cast<char>(byte ^ 4);
  write_file_atomically(run.newest, bytes);
  const auto said =
      AllOf(HasSubstr(run.newest.string() + " is damaged: the CRC-32 of its tensor '"), Not(HasSubstr("\n")));
  EXPECT_THAT(refusal_of([&] { training::read_checkpoint(run.newest, {}, stopped.config_hash); }), said);
  EXPECT_THAT(refusal_of([&] { training::read_weights(run.newest); }), said);
  EXPECT_THAT(refusal_of([&] { training::read_weights(run.newest, /*average=*/true); }), said);
  auto resumed = stopped;
  resumed.resume = run.newest;
  EXPECT_THAT(refusal_of([&] { training::Training(resumed, run); }), said);
  auto started = stopped;
  started.trial.recipe.start_weights = "before", started.weights["before"] = run.newest;
  EXPECT_THAT(refusal_of([&] { training::Training(started, run); }), said);
}

TEST(FiniteTest, NaNAndInfinitiesOfEveryTypeAreSeen) {
  for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    auto numbers = torch::linspace(-60000, 60000, 101).to(type);
    EXPECT_TRUE(training::is_finite(numbers)) << type;
    for (const double bad : {double{NAN}, double{INFINITY}, -double{INFINITY}}) {
      auto some = numbers.clone();
      some[100] = bad;
      EXPECT_FALSE(training::is_finite(some)) << type << ' ' << bad;
    }
  }
  EXPECT_TRUE(training::is_finite(torch::full({3}, -1, torch::kLong))) << "all bits are set";
  EXPECT_TRUE(training::is_finite(torch::empty({0})));
}

}  // namespace
}  // namespace abl::trainer
