// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checkpoint_writer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <future>

#include "base/error.h"
#include "base/file.h"
#include "tests/trainer/small_training.h"
#include "worker/trainer/commands/commands.h"
#include "worker/trainer/training/checked_tensors.h"

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
  training::CheckpointFiles files{folder.path(), 2};
  for (const int step : {10, 20, 20, 30, 40}) {
    write_file_atomically(files.file_of(step), std::to_string(step));
    files.add(files.file_of(step));
    if (step <= 20) files.make_best(files.file_of(step)), files.make_best(files.file_of(step));
  }
  EXPECT_THAT(names_in(folder.path()),
              testing::UnorderedElementsAre("checkpoint-30.safetensors", "checkpoint-40.safetensors",
                                            "best.safetensors"));
  EXPECT_EQ(read_file(folder.path() / "best.safetensors"), "20");
}

TEST(CheckpointFilesTest, OneThatSomebodyElseRemovedIsNoProblem) {
  const TemporaryFolder folder;
  training::CheckpointFiles files{folder.path(), 1};
  for (const int step : {1, 2, 3}) files.add(files.file_of(step));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

using ExportTest = SmallTraining;

TEST_F(ExportTest, WritesTheWeightsOfACheckpointAloneByTheModelsNames) {
  Recorder run;
  run.stop_at = 10;
  auto stopped = options();
  training::Training(stopped, run).run(run.stop);
  const auto output = folder_.path() / "model.safetensors";
  CLI::App app{"test"};
  const auto execute = commands::declare_export(app);
  app.parse(fmt::format("--weights {} --output {}", run.newest.string(), output.string()));
  testing::internal::CaptureStdout();
  EXPECT_EQ(execute(), kExitOk);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("model.safetensors: "));
  CLI::App again{"test"};
  const auto onto_itself = commands::declare_export(again);
  again.parse(fmt::format("--weights {0} --output {0}", run.newest.string()));
  EXPECT_THROW(onto_itself(), Error);
  const auto checkpoint = weights(run);
  EXPECT_TRUE(checkpoint.contains("random.cpu")) << "the checkpoint is as it was";
  EXPECT_TRUE(models::read_safetensors(output).metadata.contains("crc32"));
  const auto exported = training::read_checked(output);
  EXPECT_TRUE(exported.metadata.empty());
  EXPECT_GT(exported.tensors.size(), 10u);
  for (const auto& [name, tensor] : exported.tensors)
    EXPECT_TRUE(torch::equal(tensor, checkpoint.at("model." + name))) << name;
}

using BestCheckpoint = SmallTraining;

TEST_F(BestCheckpoint, IsThatOfTheBestEvaluationAlsoOfAResumedRun) {
  Recorder whole;
  auto once = options();
  training::Training(once, whole).run(whole.stop);
  const auto& accuracy = whole.points["val/top1"];
  const auto best = std::max_element(accuracy.begin(), accuracy.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto kept = training::read_checkpoint(once.run_dir / "best.safetensors", {}, once.config_hash);
  EXPECT_EQ(kept.step, best->first);
  EXPECT_EQ(kept.best, best->second);

  Recorder first, second;
  first.stop_at = 10;  // after the first evaluation
  auto resumed = options();
  training::Training(resumed, first).run(first.stop);
  resumed.resume = first.newest, resumed.resume_sha256 = first.newest_sha256;
  const auto before = resumed.run_dir;
  resumed.run_dir = before / "again";
  std::filesystem::create_directories(resumed.run_dir);
  training::Training(resumed, second).run(second.stop);
  const auto newer = resumed.run_dir / "best.safetensors", older = before / "best.safetensors";
  const auto file = std::filesystem::exists(newer) ? newer : older;
  EXPECT_EQ(training::read_checkpoint(file, {}, once.config_hash).step, best->first);
}

/// A disk that gets nothing done before the training's last evaluation is said.
class SlowDisk final : public protocol::Events {
 public:
  explicit SlowDisk(std::int64_t last_step) : last_step_{last_step} {}
  void start(const Start&) override {}
  void metric(std::int64_t step, const std::map<std::string, double>& values) override {
    if (!values.contains("val/top1")) return;
    accuracy[step] = values.at("val/top1");
    if (step == last_step_) trained_.set_value();
  }
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t step, const std::filesystem::path&, const std::string&) override {
    said.push_back(step);
    if (said.size() == 1)
      training_waited = trained_.get_future().wait_for(std::chrono::minutes{1}) != std::future_status::ready;
  }
  void end(Status, const std::string&, bool) override {}

  std::map<std::int64_t, double> accuracy;
  std::vector<std::int64_t> said;
  bool training_waited = false;

 private:
  const std::int64_t last_step_;
  std::promise<void> trained_;
};

TEST_F(BestCheckpoint, IsNotWaitedForByTheTraining) {
  SlowDisk disk{30};
  const std::atomic<bool> stop = false;
  auto slow = options();
  slow.checkpoint_every = std::chrono::duration<double>{1e-9};  // the first after the first step
  slow.trial.recipe.eval_every = 0.1;                           // every step is evaluated
  EXPECT_TRUE(training::Training(slow, disk).run(stop));
  EXPECT_FALSE(disk.training_waited);
  const auto best = std::ranges::max_element(disk.accuracy, {}, [](const auto& at) { return at.second; });
  std::vector<std::int64_t> expected{1, best->first, 30};
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  EXPECT_EQ(disk.said, expected) << "of those that were the best while the disk was busy the newest alone";

  Recorder again;  // up to there, by a disk that is not slow
  auto until = options();
  until.trial.recipe.eval_every = 0.1, until.last_step = best->first;
  training::Training(until, again).run(again.stop);
  const auto kept = training::read_checkpoint(slow.run_dir / "best.safetensors", {}, slow.config_hash);
  EXPECT_EQ(kept.step, best->first);
  EXPECT_EQ(kept.best, best->second);
  for (const auto& [name, tensor] : weights(again))
    EXPECT_TRUE(torch::equal(tensor, kept.tensors.at(name))) << name;
}

/// Looks at the best checkpoint each time that another one is said.
class BestWatcher final : public protocol::Events {
 public:
  explicit BestWatcher(training::TrainingOptions options) : options_{std::move(options)} {}
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>&) override {}
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string&) override {
    const auto newest = training::read_checkpoint(path, {}, options_.config_hash);
    if (!newest.best) return;
    ++with_best;
    const auto best = path.parent_path() / "best.safetensors";
    ASSERT_TRUE(std::filesystem::exists(best)) << step;
    EXPECT_EQ(training::read_checkpoint(best, {}, options_.config_hash).best, newest.best) << step;
  }
  void end(Status, const std::string&, bool) override {}
  int with_best = 0;

 private:
  const training::TrainingOptions options_;
};

TEST_F(BestCheckpoint, LiesThereBeforeACheckpointThatKnowsOfIt) {
  for (const double every : {0.0, 1e-9, 20.0}) {
    auto run = options();
    run.checkpoint_every = std::chrono::duration<double>{every};
    BestWatcher watcher{run};
    const std::atomic<bool> stop = false;
    EXPECT_TRUE(training::Training(run, watcher).run(stop));
    EXPECT_GT(watcher.with_best, 0) << "who goes on from one of them evaluates no step before it again";
  }
}

/// Ends a training as an error does.
class Failing final : public protocol::Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t step, const std::map<std::string, double>&) override {
    if (step == 15) throw Error{Code::kAborted, "as a loss that is not finite"};
  }
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) override {}
  void end(Status, const std::string&, bool) override {}
};

TEST_F(BestCheckpoint, StaysWhenTheTrainingFails) {
  Failing events;
  const auto run = options();
  const std::atomic<bool> stop = false;
  EXPECT_THROW(training::Training(run, events).run(stop), Error);
  EXPECT_EQ(training::read_checkpoint(run.run_dir / "best.safetensors", {}, run.config_hash).step, 10);
}

TEST_F(BestCheckpoint, IsLeftOutWhereNobodyWantsIt) {
  Recorder said;
  auto none = options();
  none.keep_best = "none", none.keep_last = 1;
  training::Training(none, said).run(said.stop);
  EXPECT_THAT(names_in(none.run_dir), testing::ElementsAre("checkpoint-30.safetensors"));
}

}  // namespace
}  // namespace abl::trainer
