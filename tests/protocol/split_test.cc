// SPDX-License-Identifier: Apache-2.0
#include "protocol/split.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace abl::protocol {
namespace {

TEST(SplitTest, IsStoredAndReadAgain) {
  for (const Split split : {Split{}, Split{.least_gpus = 8}, Split{.least_nodes = 1, .most_nodes = 2}})
    EXPECT_EQ(Split::parse(split.text()), split) << split.text();
  EXPECT_EQ(Split{}.text(), "") << "as files of earlier versions have it";
  EXPECT_EQ((Split{.least_nodes = 1, .most_nodes = 2}.text()), R"({"nodes":[1,2]})");
  for (const char* wrong : {"[", "[]", R"({"nodes":[1]})", R"({"nodes":"2"})"})
    EXPECT_THROW(Split::parse(wrong), Error) << wrong;
}

TEST(SplitTest, IsSaidToPeople) {
  EXPECT_EQ((Split{.least_gpus = 8}.words(16)), "8 to 16 GPUs");
  EXPECT_EQ((Split{.least_nodes = 2, .most_nodes = 2}.words(16)), "16 GPUs, 8 on each of 2 workers");
  EXPECT_EQ((Split{.least_nodes = 1, .most_nodes = 2}.words(16)),
            "8 to 16 GPUs, 8 on each of 1 to 2 workers");
  EXPECT_EQ((Split{.least_nodes = 2, .most_nodes = 2}.words(0)), "2 slots, one on each of 2 workers");
  EXPECT_EQ((Split{.least_nodes = 1, .most_nodes = 1}.words(1)), "1 GPU of one worker");
}

}  // namespace
}  // namespace abl::protocol
