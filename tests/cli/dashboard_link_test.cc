// SPDX-License-Identifier: Apache-2.0
#include "cli/dashboard_link.h"

#include <gtest/gtest.h>

namespace abl::cli {
namespace {

TEST(DashboardLink, IsWhereItListensForWhoIsOnItsMachine) {
  EXPECT_EQ(dashboard_at("unix:/home/ada/run/scheduler.sock", "http://127.0.0.1:8571/"),
            "http://127.0.0.1:8571/");
  EXPECT_EQ(dashboard_at("127.0.0.1:7071", "https://127.0.0.1:8571/"), "https://127.0.0.1:8571/");
  EXPECT_EQ(dashboard_at("[::1]:7071", "https://[::1]:8571/"), "https://[::1]:8571/");
  EXPECT_EQ(dashboard_at("unix:/s.sock", "https://0.0.0.0:8571/"), "https://localhost:8571/");
}

TEST(DashboardLink, HasTheNameByWhichTheSchedulerIsReached) {
  EXPECT_EQ(dashboard_at("gpu-head:7071", "https://0.0.0.0:8571/"), "https://gpu-head:8571/");
  EXPECT_EQ(dashboard_at("[2001:db8::1]:7071", "https://[::]:8571/"), "https://[2001:db8::1]:8571/");
}

TEST(DashboardLink, IsNothingWhereThereIsNoneOrOnlyTheOtherMachinesOwn) {
  EXPECT_EQ(dashboard_at("gpu-head:7071", "https://127.0.0.1:8571/"), "");
  EXPECT_EQ(dashboard_at("gpu-head:7071", "http://127.0.0.1:8571/"), "");
  EXPECT_EQ(dashboard_at("unix:/s.sock", ""), "");
  EXPECT_EQ(dashboard_at("unix:/s.sock", "nonsense"), "");
}

}  // namespace
}  // namespace abl::cli
