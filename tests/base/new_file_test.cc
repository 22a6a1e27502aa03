// SPDX-License-Identifier: Apache-2.0
#include "base/new_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "file"; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder_.path()}, {}));
  }
  TemporaryFolder folder_;
};

TEST_F(NewFileTest, AppearsAsAWholeWhenItIsPublished) {
  write_file_atomically(file(), "old");
  NewFile out{file(), {.ending = ".1.tmp"}};
  EXPECT_EQ(out.part(), folder_.path() / "file.1.tmp");
  out.append("a");
  out.append("bc");
  out.write(1, "X");
  EXPECT_EQ(read_file(file()), "old");
  out.publish();
  EXPECT_EQ(read_file(file()), "aXc");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, LeavesNothingWhenItIsNotPublished) {
  write_file_atomically(file(), "old");
  {
    NewFile out{file(), {.ending = ".part"}};
    out.append("new");
    EXPECT_EQ(files(), 2U);
  }
  EXPECT_EQ(read_file(file()), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, TakesThePlaceOfWhatADeadProcessLeft) {
  std::ofstream{file().string() + ".part"} << "a longer text";
  fs::permissions(file().string() + ".part", fs::perms::owner_all);
  NewFile out{file(), {.ending = ".part", .mode = 0600}};
  out.append("new");
  out.publish();
  EXPECT_EQ(read_file(file()), "new");
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 1U);
}

TEST_F(NewFileTest, LettersOfItsOwnKeepTwoApart) {
  NewFile one{file(), {.ending = ".XXXXXX"}}, other{file(), {.ending = ".XXXXXX"}};
  EXPECT_NE(one.part(), other.part());
  one.append("1"), other.append("2");
  other.publish(), one.publish();
  EXPECT_EQ(read_file(file()), "1");
}

TEST_F(NewFileTest, TakesTheContentOfAnotherFileByItsName) {
  const auto written = folder_.path() / "written";
  write_file_atomically(written, "all of it");
  for (const bool published : {false, true}) {
    NewFile out{file(), {.ending = unfinished_ending()}};
    out.take_content_of(written);
    EXPECT_FALSE(fs::exists(file()));
    if (published) out.publish();
  }
  EXPECT_TRUE(fs::equivalent(file(), written));
  EXPECT_EQ(files(), 2U) << "one that is not published goes";
  NewFile out{file(), {.ending = unfinished_ending()}};
  EXPECT_THROW(out.take_content_of(folder_.path() / "absent"), Error);
}

TEST(FinishedName, IsWhatStandsBeforeTheEndingOfAnyProcess) {
  EXPECT_EQ(finished_name("a.safetensors" + unfinished_ending()), "a.safetensors");
  EXPECT_EQ(finished_name("a.4711.tmp"), "a");
  for (const auto* name : {"a", "a.tmp", "a..tmp", "a4711.tmp", "4711.tmp", ".tmp", "a.47x.tmp"})
    EXPECT_FALSE(finished_name(name)) << name;
}

TEST_F(NewFileTest, FollowsALinkAndLeavesDevicesAndFoldersAlone) {
  write_file_atomically(file(), "old");
  fs::create_symlink("file", folder_.path() / "link");
  NewFile out{folder_.path() / "link", {.ending = ".1.tmp"}};
  out.append("new");
  out.publish();
  EXPECT_EQ(read_file(file()), "new");
  EXPECT_TRUE(fs::is_symlink(folder_.path() / "link"));
  fs::create_directory(folder_.path() / "folder");
  for (const fs::path& no_file : {fs::path{"/dev/null"}, folder_.path() / "folder"}) try {
      NewFile refused{no_file, {.ending = ".1.tmp"}};
      ADD_FAILURE() << no_file;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument) << no_file;
    }
}

TEST_F(NewFileTest, NamesTheFileWhereItCannotBeWritten) {
  const auto absent = folder_.path() / "absent" / "file";
  try {
    NewFile out{absent, {.ending = ".part"}};
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string{error.what()}, "cannot write " + absent.string() + ": No such file or directory");
  }
  NewFile out{file(), {.ending = ".part"}};
  fs::create_directory(file());
  std::ofstream{file() / "inside"} << "";
  EXPECT_THROW(out.publish(), Error) << "a folder is there by now";
}

}  // namespace
}  // namespace abl
