// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() { write_file_atomically(file_, "words"); }

  static Code refusal(const std::filesystem::path& file) {
    try {
      const MappedFile mapped{file};
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(file.string()));
      return error.code();
    }
    return Code::kOk;
  }

  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "file";
};

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
  const MappedFile mapped{file_};
  EXPECT_EQ(mapped.bytes(), "words");
  EXPECT_EQ(mapped.path(), file_);
}

TEST_F(MappedFileTest, MayBeWrittenToWithoutChangingTheFile) {
  const MappedFile mapped{file_, MappedFile::Access::kCopyOnWrite};
  mapped.start()[0] = 'W';
  EXPECT_EQ(mapped.bytes(), "Words");
  EXPECT_EQ(read_file(file_), "words");
}

TEST_F(MappedFileTest, OfAnEmptyFileIsEmpty) {
  write_file_atomically(file_, "");
  EXPECT_EQ(MappedFile{file_}.bytes(), "");
}

TEST_F(MappedFileTest, OfWhatIsNoRegularFileIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(folder_ / "pipe"), Code::kInvalidArgument);
  EXPECT_EQ(refusal(folder_.path()), Code::kInvalidArgument);
  EXPECT_EQ(refusal(folder_ / "none"), Code::kNotFound);
}

}  // namespace
}  // namespace abl
