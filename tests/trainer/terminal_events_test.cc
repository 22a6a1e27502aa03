// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/terminal_events.h"

#include <gmock/gmock.h>

#include "tests/images/picture_files.h"

namespace abl::trainer {
namespace {

using testing::HasSubstr;
using testing::Not;

class TerminalEventsTest : public testing::Test {
 protected:
  /// What a run of ten steps of 20 images shows.
  std::string shown(bool has_best) {
    if (has_best) images::write(folder_.path() / "best.safetensors", "x");
    testing::internal::CaptureStdout();
    commands::TerminalEvents events;
    events.start({.total_steps = 10,
                  .images_per_step = 20,
                  .resumed_step = {},
                  .data_fingerprint = "d",
                  .environment = {{"device", "cpu"}}});
    events.metric(5, {{"train/loss", 1}, {"images_per_s", 1e9}});
    events.metric(5, {{"val/top1", 50}, {"val/loss", 2}});
    events.metric(5, {{"val_ema/top1", 60}, {"val_ema/loss", 1.5}});
    events.checkpoint(5, folder_.path() / "checkpoint-5.safetensors", "");
    events.end(protocol::End::Status::kCompleted, "", true);
    return testing::internal::GetCapturedStdout();
  }
  TemporaryFolder folder_;
};

TEST_F(TerminalEventsTest, TheRunningAverageIsShownBesideTheWeights) {
  const auto text = shown(false);
  EXPECT_THAT(text, HasSubstr("val/top1  50.00 %  val/loss 2.0000\n"));
  EXPECT_THAT(text, HasSubstr("val_ema/top1  60.00 %  val_ema/loss 1.5000\n"));
}

TEST_F(TerminalEventsTest, TheLastLinesNameTheBestCheckpointAndTheRateOfTheWholeRun) {
  const auto text = shown(true);
  EXPECT_THAT(text, HasSubstr("newest checkpoint " + (folder_.path() / "checkpoint-5.safetensors").string()));
  EXPECT_THAT(text, HasSubstr("best checkpoint " + (folder_.path() / "best.safetensors").string()));
  const auto summary = text.substr(text.find("completed after"));
  EXPECT_THAT(summary, Not(HasSubstr("1000000000 images/s")))
      << "the last interval's says nothing of the run";
  EXPECT_THAT(shown(false), HasSubstr("images/s with evaluations and checkpoints"));
}

TEST_F(TerminalEventsTest, ABestCheckpointThatIsNotThereIsNotNamed) {
  EXPECT_THAT(shown(false), Not(HasSubstr("best checkpoint")));
}

}  // namespace
}  // namespace abl::trainer
