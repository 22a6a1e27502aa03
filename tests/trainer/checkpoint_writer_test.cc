// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/checkpoint_writer.h"

#include <gmock/gmock.h>

#include <future>

#include "base/error.h"
#include "base/sha256.h"
#include "tests/trainer/small_training.h"

namespace abl::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Holds a writer at the moment when it says its checkpoint.
class HeldEvents final : public protocol::Events {
 public:
  void start(const Start&) override {}
  void metric(std::int64_t, const std::map<std::string, double>&) override {}
  void log(LogLevel, const std::string&) override {}
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override {
    files_then = 0;
    for (const auto& entry : std::filesystem::directory_iterator{path.parent_path()})
      files_then += entry.path().extension() == ".safetensors";
    said.push_back(step), newest = path, digest = sha256;
    if (said.size() == hold_at) reached.set_value(), released.get_future().wait();
  }
  void end(Status, const std::string&, bool) override {}

  std::size_t hold_at = 0;
  std::promise<void> reached, released;
  std::vector<std::int64_t> said;
  int files_then = 0;  ///< that lay there when the newest was said
  std::filesystem::path newest;
  std::string digest;
};

class CheckpointWriterTest : public testing::Test {
 protected:
  training::Checkpoint checkpoint(std::int64_t step) const {
    return {{.config_hash = "trial",
             .step = step,
             .best = {},
             .machine = {.torch = "2", .device = "cpu", .instructions = "none", .threads = 1},
             .data_fingerprint = "shapes",
             .weights = {}},
            {{"model.weight", weight_}}};
  }
  std::filesystem::path file(std::int64_t step) const {
    return folder_.path() / ("checkpoint-" + std::to_string(step) + ".safetensors");
  }
  void write_now(training::CheckpointWriter& writer, std::int64_t step, bool is_best = false) const {
    writer.hold(checkpoint(step), is_best);
    writer.write();
  }
  TemporaryFolder folder_;
  HeldEvents events_;
  torch::Tensor weight_ = torch::ones({100});
};

TEST_F(CheckpointWriterTest, TheTrainingGoesOnWhileACopyIsWritten) {
  events_.hold_at = 1;
  training::CheckpointWriter writer{folder_.path(), 2, events_};
  EXPECT_FALSE(writer.is_writing());
  write_now(writer, 10);
  weight_.zero_();  // the next step
  events_.reached.get_future().wait();
  EXPECT_TRUE(writer.is_writing());
  writer.check();
  events_.released.set_value();
  writer.finish();
  EXPECT_FALSE(writer.is_writing());
  const auto written = training::read_checkpoint(file(10), events_.digest, "trial");
  EXPECT_TRUE(torch::equal(written.tensors.at("model.weight"), torch::ones({100})));
  EXPECT_EQ(events_.digest, sha256_file(file(10)));
}

TEST_F(CheckpointWriterTest, TheOldestGoesOnlyAfterTheNewestWasSaid) {
  training::CheckpointWriter writer{folder_.path(), 1, events_};
  for (const int step : {1, 2, 3}) write_now(writer, step);
  writer.finish();
  EXPECT_EQ(events_.said, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(events_.files_then, 2) << "a run that is killed here goes on from one of them";
  EXPECT_FALSE(std::filesystem::exists(file(2)));
  EXPECT_TRUE(std::filesystem::exists(file(3)));
}

TEST_F(CheckpointWriterTest, ItsEndWaitsForWhatIsUnderWay) {
  {
    training::CheckpointWriter writer{folder_.path(), 1, events_};
    write_now(writer, 7, /*is_best=*/true);
  }
  EXPECT_EQ(events_.said, std::vector<std::int64_t>{7});
  EXPECT_EQ(training::read_checkpoint(file(7), events_.digest, "trial").step, 7);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "best.safetensors"));
}

TEST_F(CheckpointWriterTest, WhatIsHeldWaitsForItsTurnAndNothingWaitsForIt) {
  events_.hold_at = 1;
  training::CheckpointWriter writer{folder_.path(), 3, events_};
  write_now(writer, 1);
  events_.reached.get_future().wait();
  for (const int step : {2, 3}) {  // while the first one is being written
    weight_.fill_(step);
    writer.hold(checkpoint(step), /*is_best=*/true);
  }
  weight_.zero_();
  EXPECT_TRUE(writer.is_writing());
  events_.released.set_value();
  writer.write();
  writer.hold(checkpoint(4), false);
  writer.write();
  writer.finish();
  EXPECT_EQ(events_.said, (std::vector<std::int64_t>{1, 3, 4})) << "the newest that is held takes the place";
  for (const auto& [step, value] : {std::pair{1, 1}, {3, 3}, {4, 0}}) {
    const auto written = training::read_checkpoint(file(step), {}, "trial").tensors.at("model.weight");
    EXPECT_TRUE(torch::equal(written, torch::full({100}, static_cast<float>(value)))) << step;
  }
  EXPECT_EQ(training::read_checkpoint(folder_.path() / "best.safetensors", {}, "trial").step, 3);
}

TEST_F(CheckpointWriterTest, ItsEndWritesWhatIsHeld) {
  {
    training::CheckpointWriter writer{folder_.path(), 2, events_};
    write_now(writer, 1);
    writer.hold(checkpoint(2), /*is_best=*/true);
  }
  EXPECT_EQ(events_.said, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(training::read_checkpoint(folder_.path() / "best.safetensors", {}, "trial").step, 2);
}

TEST_F(CheckpointWriterTest, AWriteThatFailsIsToldOnce) {
  training::CheckpointWriter writer{folder_.path() / "missing", 1, events_};
  write_now(writer, 1);
  writer.hold(checkpoint(2), false);
  EXPECT_THROW(writer.write(), Error) << "before the next one begins";
  writer.finish();
  write_now(writer, 3);
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_TRUE(events_.said.empty());
}

TEST_F(CheckpointWriterTest, WhatIsNotFiniteReplacesNoGoodFile) {
  training::CheckpointWriter writer{folder_.path(), 2, events_};
  for (const int step : {10, 20}) write_now(writer, step);
  weight_[50] = NAN;
  write_now(writer, 30);
  try {
    writer.finish();
    ADD_FAILURE() << "it was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kAborted);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("at step 30"), HasSubstr("model.weight")));
  }
  weight_.fill_(1);
  auto with_loss = checkpoint(40);
  with_loss.loss_sum = INFINITY;
  writer.hold(with_loss, true);
  writer.write();
  EXPECT_THROW(writer.finish(), Error);
  EXPECT_TRUE(std::filesystem::exists(file(10)) && std::filesystem::exists(file(20)));
  EXPECT_FALSE(std::filesystem::exists(file(30)) || std::filesystem::exists(file(40)));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "best.safetensors"));
}

TEST_F(CheckpointWriterTest, CheckpointsAreSoFarApartThatTheyCostLittle) {
  training::CheckpointWriter writer{folder_.path(), 2, events_};
  using Duration = training::CheckpointWriter::Duration;
  EXPECT_EQ(writer.interval(Duration{5}), Duration{5}) << "what the first one costs is not known yet";
  write_now(writer, 1);
  writer.finish();
  EXPECT_GT(writer.cost().count(), 0);
  EXPECT_EQ(writer.interval(Duration{1e-9}), 50 * writer.cost());
  EXPECT_EQ(writer.interval(Duration{3600}), Duration{3600});
  EXPECT_EQ(writer.interval(Duration{0}), Duration{0}) << "after every step, whatever it costs";
}

TEST_F(CheckpointWriterTest, WhatAKilledProcessHadBegunIsRemoved) {
  const auto begun = file(5).string() + ".123.tmp", another = (folder_.path() / "notes.tmp").string();
  for (const auto& name : {begun, another, file(5).string()}) images::write(name, "x");
  training::CheckpointWriter writer{folder_.path(), 2, events_};
  writer.adopt();
  EXPECT_FALSE(std::filesystem::exists(begun));
  EXPECT_TRUE(std::filesystem::exists(another) && std::filesystem::exists(file(5)));
}

}  // namespace
}  // namespace abl::trainer
