// SPDX-License-Identifier: Apache-2.0
#include "protocol/metrics.h"

#include <gtest/gtest.h>

namespace abl::protocol {
namespace {

TEST(MetricName, TellsWhatIsWantedWhereNobodySays) {
  for (const char* name :
       {"val/loss", "loss", "error", "step_time", "time_per_image", "fid", "memory_bytes", "loss_per_token",
        "elapsed", "mem_mb", "train/duration", "params.weights", "flops.fvcore(2)@mk-head-all-tokens"})
    EXPECT_EQ(better_by_name(name), Better::kLower) << name;
  for (const char* name : {"val/top1", "accuracy", "images_per_s", "images_per_second", "samples/sec", "it/s",
                           "img_s", "accuracy_per_class", "glossiness", "", "//"})
    EXPECT_EQ(better_by_name(name), Better::kHigher) << name;
  EXPECT_EQ(better_by_name("lr"), Better::kNone);
  EXPECT_EQ(name_of(better_by_name("lr")), "none");
}

TEST(MetricName, OfTheTrainersOwnUnitAndDirectionAreKnown) {
  const auto direction = [](const char* name) { return name_of(find(trainer_metrics(), name)->better); };
  EXPECT_EQ(direction(metric::kValLoss), "lower");
  EXPECT_EQ(direction(metric::kAverageTop1), "higher");
  EXPECT_EQ(direction(metric::kLearningRate), "none");
  EXPECT_EQ(direction(metric::kTimeData), "lower");
  EXPECT_EQ(find(trainer_metrics(), metric::of(metric::kAverage, metric::kTop5))->unit, Unit::kPercent);
  for (const char* name : {"val/miou", "val_ema/aacc", "val/box_ap50", "val_ema/mask_ap_large"}) {
    EXPECT_EQ(direction(name), "higher") << name;
    EXPECT_EQ(unit_by_name(name), Unit::kPercent) << name;
  }
  EXPECT_EQ(find(trainer_metrics(), "accuracy"), nullptr);
  for (const auto& mode : count_modes()) EXPECT_EQ(better_by_name(mode.name), Better::kLower) << mode.name;
}

TEST(MetricName, TellsWhatDiffersBetweenEqualTrainings) {
  for (const char* name :
       {"images_per_s", "memory_bytes", "epoch.seconds", "time_per_image", "elapsed", "duration", "it/s",
        "img_s", "samples/sec", "mem_mb", "gpu_util", "images_per_second", "steps per min", "throughput"})
    EXPECT_TRUE(tells_of_the_machine(name)) << name;
  for (const char* name : {"val/loss", "lr", "timeliness", "fid", "loss_per_token", "accuracy_per_class",
                           "top1_per", "acc_s", "loss/s", "s", "member", "min"})
    EXPECT_FALSE(tells_of_the_machine(name)) << name;
}

}  // namespace
}  // namespace abl::protocol
