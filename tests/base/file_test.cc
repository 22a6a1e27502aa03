// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/error.h"

namespace abl {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = (fs::temp_directory_path() / "ablate-test-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~FileTest() override { fs::remove_all(folder); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
  }
  fs::path folder;
};

TEST_F(FileTest, WrittenTextIsReadBackAndReplacesTheOldAsAWhole) {
  const std::string binary{"a\0\xff\n", 4};
  write_file_atomically(folder / "x", "a longer old text");
  write_file_atomically(folder / "x", binary);
  EXPECT_EQ(read_file(folder / "x"), binary);
  EXPECT_EQ(files(), 1u) << "nothing is left beside it";
  EXPECT_EQ(fs::status(folder / "x").permissions(), fs::perms{0644});
}

TEST_F(FileTest, AFileMayBeWrittenInItsPlace) {
  write_file(folder / "x", "a longer old text");
  write_file(folder / "x", "new");
  EXPECT_EQ(read_file(folder / "x"), "new");
  EXPECT_THROW(write_file(folder / "no" / "x", "new"), Error);
}

TEST_F(FileTest, DiskThatFillsLeavesTheOldFile) {
  write_file_atomically(folder / "x", "old");
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write_file_atomically(folder / "x", std::string(5000, 'y')), Error);
  EXPECT_THROW(write_file(folder / "y", std::string(5000, 'y')), Error);
  fs::remove(folder / "y");
  EXPECT_THROW(try_to_write(folder, 5000), Error);
  EXPECT_NO_THROW(try_to_write(folder, 1000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(read_file(folder / "x"), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(FileTest, WhatCannotBeReadOrWrittenIsNamed) {
  const auto message = [](auto action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message([&] { read_file(folder / "none"); }),
              testing::HasSubstr((folder / "none").string() + ": No such file"));
  EXPECT_THAT(message([&] { read_file(folder); }), testing::HasSubstr("is a folder"));
  EXPECT_THAT(message([&] { write_file_atomically(folder / "no" / "x", ""); }),
              testing::HasSubstr((folder / "no/x").string()));
}

TEST_F(FileTest, HomeFollowsTheEnvironment) {
  ::setenv("ABLATE_HOME", "/somewhere", 1);
  EXPECT_EQ(home_folder(), "/somewhere");
  ::unsetenv("ABLATE_HOME");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(home_folder(), "/state/ablate");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(home_folder(), "/home/me/.local/state/ablate");
  ::unsetenv("HOME");
  EXPECT_THROW(home_folder(), Error);
}

TEST_F(FileTest, ProgramFolderHoldsTheRunningProgram) {
  EXPECT_TRUE(fs::exists(program_folder() / "base_test"));
}

}  // namespace
}  // namespace abl
