// SPDX-License-Identifier: Apache-2.0
#include "base/guarded.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace abl {
namespace {

TEST(GuardedTest, ThreadsThatHoldTheLockDoNotLoseEachOthersChanges) {
  Guarded<int> count{5};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) ++*count.lock();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(*count.lock(), 4005);
}

}  // namespace
}  // namespace abl
