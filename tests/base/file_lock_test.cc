// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <future>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl {
namespace {

using Kind = FileLock::Kind;

class FileLockTest : public testing::TestWithParam<Kind> {
 protected:
  std::filesystem::path file() const { return folder_.path() / "lock"; }
  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, FileLockTest, testing::Values(Kind::kFlock, Kind::kOpenFile));

TEST_P(FileLockTest, OneHolderAtATimeAndFreeAgainAfterwards) {
  {
    const auto first = FileLock::try_lock(file(), GetParam());
    ASSERT_TRUE(first.has_value());
    EXPECT_TRUE(first->made_file());
    EXPECT_FALSE(FileLock::try_lock(file(), GetParam()).has_value());
  }
  const auto again = FileLock::try_lock(file(), GetParam());
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->made_file());
}

TEST_P(FileLockTest, TheFileGoesWithTheLockWhereThatIsAskedFor) {
  {
    auto lock = FileLock::try_lock(file(), GetParam());
    lock->remove_after(true);
    EXPECT_TRUE(std::filesystem::exists(file()));
    const FileLock moved = *std::move(lock);
    EXPECT_FALSE(FileLock::try_lock(file(), GetParam()).has_value());
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_P(FileLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(FileLock::try_lock(folder_.path() / "absent" / "lock", GetParam()), Error);
}

TEST_F(FileLockTest, WhetherAnOpenFilesLockIsHeldIsToldWithoutTakingIt) {
  EXPECT_FALSE(FileLock::is_held(file())) << "no file, no holder";
  {
    const auto lock = FileLock::try_lock(file(), Kind::kOpenFile);
    EXPECT_TRUE(FileLock::is_held(file()));
  }
  EXPECT_FALSE(FileLock::is_held(file()));
}

TEST_F(FileLockTest, TheKindsAreTheSystemsOwn) {
  const int other = ::open(file().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_FALSE(FileLock::try_lock(file(), Kind::kFlock).has_value()) << "as an older program holds it";
  EXPECT_TRUE(FileLock::try_lock(file(), Kind::kOpenFile).has_value());
  ::close(other);
}

TEST_F(FileLockTest, WhoWaitsGetsANewFileWhenTheOldOneWent) {
  std::future<bool> waiting;
  {
    FileLock first = FileLock::wait(file(), 0644);
    first.remove_after(true);
    waiting = std::async(std::launch::async, [this] {
      const FileLock second = FileLock::wait(file(), 0644);
      return std::filesystem::exists(file());
    });
  }
  EXPECT_TRUE(waiting.get());
}

TEST_F(FileLockTest, TheHolderSignsWithItsNumber) {
  write_file_atomically(file(), "a longer text of another one");
  const auto lock = FileLock::try_lock(file());
  lock->sign();
  EXPECT_EQ(read_file(file()), std::to_string(::getpid()));
}

}  // namespace
}  // namespace abl
