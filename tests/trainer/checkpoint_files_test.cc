// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/checkpoint_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/checked_tensors.h"
#include "worker/trainer/commands/commands.h"

namespace abl::trainer {
namespace {

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    names.push_back(entry.path().filename());
  return names;
}

TEST(CheckpointFilesTest, TheNewestFewStayAndTheBestUnderItsOwnName) {
  const TemporaryFolder folder;
  CheckpointFiles files{folder.path(), 2};
  for (const int step : {10, 20, 20, 30, 40}) {
    write_file_atomically(files.file_of(step), std::to_string(step));
    files.add(files.file_of(step));
    if (step <= 20) files.make_best(files.file_of(step));
  }
  EXPECT_THAT(names_in(folder.path()),
              testing::UnorderedElementsAre("checkpoint-30.safetensors", "checkpoint-40.safetensors",
                                            "best.safetensors"));
  EXPECT_EQ(read_file(folder.path() / "best.safetensors"), "20");
}

TEST(CheckpointFilesTest, OneThatSomebodyElseRemovedIsNoProblem) {
  const TemporaryFolder folder;
  CheckpointFiles files{folder.path(), 1};
  for (const int step : {1, 2, 3}) files.add(files.file_of(step));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

using ExportTest = SmallTraining;

TEST_F(ExportTest, WritesTheWeightsOfACheckpointAloneByTheModelsNames) {
  Recorder run;
  run.stop_at = 10;
  auto stopped = options();
  Training(stopped, run).run(run.stop);
  const auto output = folder_.path() / "model.safetensors";
  CLI::App app{"test"};
  const auto execute = declare_export(app);
  app.parse(fmt::format("--weights {} --output {}", run.newest.string(), output.string()));
  testing::internal::CaptureStdout();
  EXPECT_EQ(execute(), kExitOk);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("model.safetensors: "));
  CLI::App again{"test"};
  const auto onto_itself = declare_export(again);
  again.parse(fmt::format("--weights {0} --output {0}", run.newest.string()));
  EXPECT_THROW(onto_itself(), Error);
  const auto checkpoint = weights(run);
  EXPECT_TRUE(checkpoint.contains("random.cpu")) << "the checkpoint is as it was";
  EXPECT_TRUE(models::read_safetensors(output).metadata.contains("crc32"));
  const auto exported = read_checked(output);
  EXPECT_TRUE(exported.metadata.empty());
  EXPECT_GT(exported.tensors.size(), 10u);
  for (const auto& [name, tensor] : exported.tensors)
    EXPECT_TRUE(torch::equal(tensor, checkpoint.at("model." + name))) << name;
}

using BestCheckpoint = SmallTraining;

TEST_F(BestCheckpoint, IsThatOfTheBestEvaluationAlsoOfAResumedRun) {
  Recorder whole;
  auto once = options();
  Training(once, whole).run(whole.stop);
  const auto& accuracy = whole.points["val/top1"];
  const auto best = std::max_element(accuracy.begin(), accuracy.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto kept = read_checkpoint(once.run_dir / "best.safetensors", {}, once.config_hash);
  EXPECT_EQ(kept.step, best->first);
  EXPECT_EQ(kept.best, best->second);

  Recorder first, second;
  first.stop_at = 10;  // after the first evaluation
  auto resumed = options();
  Training(resumed, first).run(first.stop);
  resumed.resume = first.newest, resumed.resume_sha256 = first.newest_sha256;
  const auto before = resumed.run_dir;
  resumed.run_dir = before / "again";
  std::filesystem::create_directories(resumed.run_dir);
  Training(resumed, second).run(second.stop);
  const auto newer = resumed.run_dir / "best.safetensors", older = before / "best.safetensors";
  const auto file = std::filesystem::exists(newer) ? newer : older;
  EXPECT_EQ(read_checkpoint(file, {}, once.config_hash).step, best->first);
}

TEST_F(BestCheckpoint, IsLeftOutWhereNobodyWantsIt) {
  Recorder said;
  auto none = options();
  none.keep_best = "none", none.keep_last = 1;
  Training(none, said).run(said.stop);
  EXPECT_THAT(names_in(none.run_dir), testing::ElementsAre("checkpoint-30.safetensors"));
}

}  // namespace
}  // namespace abl::trainer
