// SPDX-License-Identifier: Apache-2.0
#include "cli/home_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace abl::cli {
namespace {

TEST(HomeLock, OneHolderAtATimeAndFreeAgainAfterwards) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("ablate-lock-" + std::to_string(getpid()));
  EXPECT_FALSE(HomeLock::is_held(file)) << "no file, no holder";
  {
    const auto first = HomeLock::acquire(file);
    ASSERT_TRUE(first.has_value());
    EXPECT_TRUE(HomeLock::is_held(file));
    EXPECT_FALSE(HomeLock::acquire(file).has_value());
  }
  EXPECT_FALSE(HomeLock::is_held(file));
  EXPECT_TRUE(HomeLock::acquire(file).has_value());
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace abl::cli
