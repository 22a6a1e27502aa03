// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/training/verification.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/trainer/small_training.h"

namespace abl::trainer {
namespace {

Code code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::kOk;
}

class VerificationTest : public SmallTraining {
 protected:
  /// A run that wrote checkpoints at step 13 and at its end.
  VerificationTest() {
    Recorder first, rest;
    first.stop_at = 13;
    training::Training(run_, first).run(first.stop);
    from_ = first.newest;
    auto resumed = run_;
    resumed.resume = from_, resumed.resume_sha256 = first.newest_sha256;
    resumed.run_dir = run_.run_dir / "2";
    std::filesystem::create_directories(resumed.run_dir);
    training::Training(resumed, rest).run(rest.stop);
    to_ = rest.newest, points_ = rest.points;
  }

  training::TrainingOptions run_ = options();
  std::filesystem::path from_, to_;
  std::map<std::string, std::map<std::int64_t, double>> points_;
  const std::atomic<bool> never_ = false;
  const training::TrainAgain train_ = training::train_here(never_);
};

TEST_F(VerificationTest, AStretchOfARunIsTheSameToTheBit) {
  run_.resume = from_;
  const auto result = training::verify(run_, to_, train_);
  EXPECT_EQ(result.from, 13);
  EXPECT_EQ(result.to, 30);
  EXPECT_TRUE(result.different.empty());
  EXPECT_GT(result.compared, 20u);
  EXPECT_EQ(result.other_machine, "");
  EXPECT_EQ(result.points.at(30).at("val/top1"), points_["val/top1"][30]);
  EXPECT_EQ(result.points.at(20).at("train/loss"), points_["train/loss"][20]);
  EXPECT_FALSE(result.points.contains(13));
}

TEST_F(VerificationTest, WithoutAnEarlierCheckpointItBeginsAtTheStart) {
  const auto result = training::verify(run_, from_, train_);
  EXPECT_EQ(result.from, 0);
  EXPECT_EQ(result.to, 13);
  EXPECT_TRUE(result.different.empty());
}

TEST_F(VerificationTest, AChangedWeightIsNamed) {
  auto changed = training::read_checkpoint(to_, {}, run_.config_hash);
  changed.tensors.at("model.head.bias")[0] += 0.5;
  const auto file = folder_.path() / "changed";
  training::write_checkpoint(file, changed);
  run_.resume = from_;
  const auto result = training::verify(run_, file, train_);
  ASSERT_EQ(result.different.size(), 1u);
  EXPECT_EQ(result.different[0].name, "model.head.bias");
  EXPECT_NEAR(result.different[0].largest, 0.5, 1e-6);
}

TEST_F(VerificationTest, ARunThatDoesNotGetThereAgainIsDifferent) {
  run_.resume = from_;
  const auto diverge = [](const training::TrainingOptions&, protocol::Events&) -> bool {
    throw Error{Code::kAborted, "val/loss is not finite at step 20: it is nan"};
  };
  try {
    training::verify(run_, to_, diverge);
    ADD_FAILURE() << "it was compared";
  } catch (const Error& error) {
    EXPECT_EQ(exit_code(error.code()), kExitFailed) << "not bit-identical";
    EXPECT_STREQ(
        error.what(),
        "trained again, the run does not get to step 30: val/loss is not finite at step 20: it is nan");
  }
}

TEST_F(VerificationTest, ARunOfOtherImagesIsNotCompared) {
  auto changed = training::read_checkpoint(to_, {}, run_.config_hash);
  changed.data_fingerprint = "others";
  const auto file = folder_.path() / "changed";
  training::write_checkpoint(file, changed);
  run_.resume = from_;
  EXPECT_EQ(code_of([&] { training::verify(run_, file, train_); }), Code::kFailedPrecondition);
}

TEST_F(VerificationTest, CheckpointsInTheWrongOrderOrOfAnotherTrialAreRefused) {
  run_.resume = to_;
  EXPECT_THROW(training::verify(run_, from_, train_), Error);
  run_.resume = from_;
  run_.config_hash = "other";
  EXPECT_THROW(training::verify(run_, to_, train_), Error);
}

TEST_F(VerificationTest, NothingIsComparedWhenItWasStopped) {
  const std::atomic<bool> at_once = true;
  EXPECT_EQ(code_of([&] { training::verify(run_, to_, training::train_here(at_once)); }), Code::kCancelled);
  const auto to_the_first_step = [&](training::TrainingOptions options, protocol::Events& events) {
    options.last_step = 1;
    return train_(options, events);
  };
  EXPECT_EQ(code_of([&] { training::verify(run_, to_, to_the_first_step); }), Code::kCancelled);
}

}  // namespace
}  // namespace abl::trainer
