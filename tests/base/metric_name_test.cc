// SPDX-License-Identifier: Apache-2.0
#include "base/metric_name.h"

#include <gtest/gtest.h>

namespace abl {
namespace {

TEST(MetricName, TellsWhatIsWantedWhereNobodySays) {
  for (const char* name : {"val/loss", "loss", "error", "step_time", "time_per_image", "fid", "memory_bytes",
                           "params.weights", "flops.fvcore(2)@mk-head-all-tokens"})
    EXPECT_EQ(better_by_name(name), Better::kLower) << name;
  for (const char* name : {"val/top1", "accuracy", "images_per_s", "glossiness", "", "//"})
    EXPECT_EQ(better_by_name(name), Better::kHigher) << name;
  EXPECT_EQ(better_by_name("lr"), Better::kNone);
  EXPECT_EQ(to_text(better_by_name("lr")), "none");
}

TEST(MetricName, TellsWhatDiffersBetweenEqualTrainings) {
  for (const char* name : {"images_per_s", "memory_bytes", "epoch.seconds", "time_per_image"})
    EXPECT_TRUE(tells_of_the_machine(name)) << name;
  for (const char* name : {"val/loss", "lr", "timeliness", "fid"})
    EXPECT_FALSE(tells_of_the_machine(name)) << name;
}

}  // namespace
}  // namespace abl
