// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include <sys/resource.h>

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/images/picture_files.h"
#include "tests/small_disk.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/device/failure.h"

namespace abl::trainer {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class TroubleTest : public testing::Test {
 protected:
  struct Outcome {
    int code = -1;
    Json end;
  };
  /// As `ablate-trainer train …` ends.
  Outcome train(const Json& model, const std::filesystem::path& run_dir,
                const std::vector<std::string>& more = {}) const {
    const Json trial{{"model", model},
                     {"data", {{"name", "shapes"}, {"train_images", 60}, {"val_images", 20}}},
                     {"recipe", {{"use", "demo"}, {"epochs", 2}, {"batch", 20}}},
                     {"seed", 0}};
    const auto config = folder_.path() / "trial.json";
    images::write(config, trial.dump());
    std::vector<std::string> arguments{"--checkpoint-seconds", "0",        "--json",       "--run-dir",
                                       run_dir.string(),       "--config", config.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    CLI::App app{"test", "test"};
    const abl::Run execute = commands::declare_train(app);
    app.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
    testing::internal::CaptureStdout();
    Outcome outcome{.code = execute(), .end = {}};
    std::istringstream said{testing::internal::GetCapturedStdout()};
    for (std::string line; std::getline(said, line);) outcome.end = Json::parse(line);
    return outcome;
  }
  static Json model(int dim, int mlp_dim) {
    return {{"family", "simple-vit"}, {"dim", dim}, {"depth", 1},        {"heads", 2},
            {"dim_head", 8},          {"patch", 8}, {"mlp_dim", mlp_dim}};
  }
  TemporaryFolder folder_;
};

TEST_F(TroubleTest, ACheckpointThatDoesNotFitOnTheDiskEndsTheRunWithThatReasonAndLeavesNothing) {
  const SmallDisk disk;
  const auto run_dir = disk.path() / "run";
  const auto outcome = train(model(256, 1024), run_dir);  // three times 0.6 million numbers
  EXPECT_EQ(outcome.code, kExitUnavailable);
  EXPECT_EQ(outcome.end.at("status"), "failed") << outcome.end;
  EXPECT_EQ(outcome.end.at("retryable"), true) << "a disk may have room again";
  EXPECT_THAT(outcome.end.at("reason").get<std::string>(),
              AllOf(HasSubstr("cannot write " + run_dir.string() + "/checkpoint-"), Not(HasSubstr("\n"))));
  EXPECT_TRUE(std::filesystem::is_empty(run_dir)) << "what was begun is gone";
  EXPECT_EQ(outcome.end.at("fault"), "disk") << "no other machine's";
  EXPECT_GT(outcome.end.at("needed_bytes").get<std::uint64_t>(), 3u * 590'000 * 4);
}

TEST_F(TroubleTest, DataThatAreNotThereWholeAreTheMachinesFaultAndOtherDataTheTrials) {
  const auto root = folder_.path() / "data";
  const auto end_with = [&](const std::vector<std::string>& settings = {}) {
    std::vector<std::string> more{"--data-root", root.string(), "--set", "data.name=own"};
    for (const auto& setting : settings) more.insert(more.end(), {"--set", setting});
    return train(model(16, 64), folder_.path() / "run", more);
  };
  const std::vector<std::string> sizes{"data.image_size=32", "data.train_images=0", "data.val_images=0"};
  const auto with_classes = [&](int classes, std::vector<std::string> more = {}) {
    more.insert(more.end(), sizes.begin(), sizes.end());
    more.push_back(fmt::format("data.classes={}", classes));
    return end_with(more).end;
  };
  const auto fault_of = [](const Json& end) { return end.value("fault", ""); };
  EXPECT_EQ(fault_of(with_classes(2)), "data") << "no folder";
  images::write(root / "notes.txt", "none");
  const auto unknown = with_classes(2);
  EXPECT_EQ(fault_of(unknown), "data") << unknown;
  EXPECT_EQ(unknown.at("retryable"), true);
  EXPECT_THAT(unknown.at("reason").get<std::string>(), HasSubstr("no data set of a known format"));
  for (const char* file : {"train/a/1.jpg", "train/b/1.jpg"})
    images::write(root / file, images::jpeg_of(24, 16, {9, 9, 9}));
  EXPECT_EQ(fault_of(with_classes(2)), "data") << "half of it";
  for (const char* file : {"val/a/1.jpg", "val/b/1.jpg"})
    images::write(root / file, images::jpeg_of(24, 16, {9, 9, 9}));
  const auto other = with_classes(3);
  EXPECT_EQ(fault_of(other), "") << other;
  EXPECT_EQ(other.at("retryable"), false);
  std::vector<std::string> many{"data.name=own", "data.classes=2", "data.image_size=32", "data.val_images=0",
                                "data.train_images=3"};
  const auto few = end_with(many).end;
  EXPECT_EQ(fault_of(few), "") << few;
  EXPECT_THAT(
      few.at("reason").get<std::string>(),
      HasSubstr(
          "data.train_images: 3 is more than the 2 images of its split; expected at most 2, or 0 for all"));
}

TEST_F(TroubleTest, AGpuThatIsNotThereIsTheMachinesFault) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "a GPU can be used here";
  const auto outcome = train(model(16, 64), folder_.path() / "run", {"--device", "cuda:0"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.end.at("fault"), "device") << outcome.end;
}

TEST_F(TroubleTest, OfWhatCudaSaysOnlyALostDeviceIsTheMachinesFault) {
  const auto error = [](int code) {
    return c10::AcceleratorError{{__func__, __FILE__, __LINE__}, code, "CUDA error"};
  };
  EXPECT_EQ(device::lost_device(error(100)).value().fault().part, protocol::Fault::Part::kDevice);
  EXPECT_FALSE(device::lost_device(error(700))) << "an illegal address may be the program's";
  EXPECT_FALSE(device::lost_device(std::runtime_error{"another"}));
}

TEST_F(TroubleTest, ADiskThatFillsLaterLeavesTheCheckpointsBefore) {
  const SmallDisk disk;
  const auto run_dir = disk.path() / "run";
  EXPECT_EQ(train(model(16, 64), run_dir).code, kExitOk);
  const auto size = [&] {
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator{run_dir}) bytes += entry.file_size();
    return bytes;
  };
  const auto before = size();
  EXPECT_GT(before, 0u);
  EXPECT_EQ(train(model(256, 1024), disk.path() / "larger").code, kExitUnavailable);
  EXPECT_EQ(size(), before);
}

TEST_F(TroubleTest, AFolderWithCheckpointsOfAnEarlierRunIsNotTrainedIntoByMistake) {
  const auto run_dir = folder_.path() / "run";
  EXPECT_EQ(train(model(16, 64), run_dir).code, kExitOk);
  const auto again = train(model(16, 64), run_dir);
  EXPECT_EQ(again.code, kExitUsage);
  EXPECT_THAT(again.end.at("reason"), AllOf(HasSubstr("of an earlier run"), HasSubstr("--resume")));
  EXPECT_EQ(again.end.at("retryable"), false);

  const auto lost =
      train(model(16, 64), run_dir, {"--resume", (run_dir / "checkpoint-7.safetensors").string()});
  EXPECT_EQ(lost.code, kExitUsage) << "a mistyped name is no wish to begin again";
  EXPECT_THAT(lost.end.at("reason"), HasSubstr("checkpoint-7.safetensors"));
  EXPECT_EQ(train(model(16, 64), run_dir, {"--resume", (run_dir / "checkpoint-6.safetensors").string()}).code,
            kExitOk);
}

TEST_F(TroubleTest, TheBestByARunningAverageThatIsNotThereIsRefused) {
  const auto outcome = train(model(16, 64), folder_.path() / "run", {"--keep-best", "val_ema/top1"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.end.at("reason"), HasSubstr("recipe.ema is 0"));
}

TEST_F(TroubleTest, BatchNormalisationOverOneValueEndsTheRunAsFailedInOneLine) {
  const auto outcome = train({{"preset", "resnet50"}, {"stage_depths", {1, 1, 1, 1}}}, folder_.path() / "run",
                             {"--set", "recipe.accumulate=20"});
  EXPECT_NE(outcome.code, kExitOk);
  EXPECT_EQ(outcome.end.at("status"), "failed") << outcome.end;
  EXPECT_EQ(outcome.end.at("retryable"), false) << outcome.end;
  EXPECT_THAT(outcome.end.at("reason"), Not(HasSubstr("\n")));
}

TEST_F(TroubleTest, WhatAModelRefusesIsOneLineAndNotTriedAgain) {
  try {
    TORCH_CHECK_VALUE(false, "Expected more than 1 value per channel when training\nand more");
  } catch (const std::exception& error) {
    const auto refused = device::refusal(error);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), Code::kInvalidArgument);
    EXPECT_STREQ(refused->what(), "Expected more than 1 value per channel when training");
  }
  EXPECT_FALSE(device::refusal(std::runtime_error{"another"}));
  try {
    torch::zeros({2}).view({3});
  } catch (const std::exception& error) {
    EXPECT_FALSE(device::refusal(error)) << "may be anything: " << error.what();
  }
}

/// In a process of its own: the limit stays.
[[noreturn]] void build_a_model_in_little_memory(const std::function<std::string()>& reason) {
  const rlimit limit{.rlim_cur = rlim_t{16} << 30, .rlim_max = rlim_t{16} << 30};
  ::setrlimit(RLIMIT_AS, &limit);
  std::cerr << reason() << std::endl;
  std::_Exit(0);
}

TEST_F(TroubleTest, AModelThatNeedsMoreMemoryThanThereIsEndsTheRunWithThatReason) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  folder_.take_in_those_of_death_tests();
  const auto reason = [&] {
    const auto outcome = train(model(65536, 1'000'000), folder_.path() / "run");
    return fmt::format("{} {}", outcome.code, outcome.end.at("reason").get<std::string>());
  };
  EXPECT_EXIT(
      build_a_model_in_little_memory(reason), testing::ExitedWithCode(0),
      "^3 not enough memory for the model and a batch of 20 images of 32 pixels: DefaultCPUAllocator: "
      "can't allocate memory: you tried to allocate [0-9]+ bytes");
}

TEST_F(TroubleTest, OnlyErrorsOfMemoryAreCalledThat) {
  config::TrialConfig trial;
  trial.recipe.batch = 7, trial.data.image_size = 224;
  const auto memory = device::out_of_memory(std::bad_alloc{}, trial);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->code(), Code::kResourceExhausted);
  EXPECT_THAT(memory->what(), HasSubstr("a batch of 7 images of 224 pixels"));
  EXPECT_FALSE(device::out_of_memory(std::runtime_error{"another"}, trial));
  try {
    torch::zeros({2}).view({3});
  } catch (const std::exception& error) {
    EXPECT_FALSE(device::out_of_memory(error, trial)) << error.what();
  }
}

}  // namespace
}  // namespace abl::trainer
