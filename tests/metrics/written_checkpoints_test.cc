// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/written_checkpoints.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "tests/temporary_folder.h"

namespace abl::metrics {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class WrittenCheckpointsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text, int age_s = 0) const {
    fs::create_directories((folder / name).parent_path());
    write_file(folder / name, text);
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::seconds{age_s});
  }
  /// A look that much later: the file's name and its step, or nothing.
  std::string look(std::uint32_t step, std::chrono::milliseconds later = 1s) {
    now += later;
    const auto written = checkpoints.look(step, now);
    return written ? written->file.filename().string() + " " + std::to_string(written->step) : "";
  }
  std::string last(std::uint32_t step, bool was_killed = false) {
    const auto written = checkpoints.last(step, was_killed);
    return written ? written->file.filename().string() + " " + std::to_string(written->step) : "";
  }

  TemporaryFolder folder;
  WrittenCheckpoints checkpoints{folder.path(), "out/*/*.pth"};
  WrittenCheckpoints::SteadyTime now{};
};

TEST_F(WrittenCheckpointsTest, OneIsSaidOnceWhenNothingHasChangedItForAWhile) {
  EXPECT_EQ(look(1), "");
  write("out/a/last.pth", "one");
  EXPECT_EQ(look(2), "");
  write("out/a/last.pth", "one and more");
  EXPECT_EQ(look(3), "") << "it is still written";
  EXPECT_EQ(look(4), "");
  EXPECT_EQ(look(4), "last.pth 3") << "with the step that the run was at when it was seen";
  EXPECT_EQ(look(5, 60s), "");
  write("out/a/last.pth", "two", -1);
  EXPECT_EQ(look(6), "");
  EXPECT_EQ(look(7, 2s), "last.pth 6");
}

TEST_F(WrittenCheckpointsTest, TheNewestCountsAndWhatIsEmptyOrFetchedDoesNot) {
  write("out/a/2.pth", "two", 10);
  write("out/a/1.pth", "one", 20);
  write("out/a/3.pth", "");
  fs::create_directories(folder / "out/a/4.pth");
  EXPECT_EQ(last(5), "2.pth 5");
  WrittenCheckpoints top{folder.path(), "*.pth"};
  write("fetched.pth", "of the attempt before");
  EXPECT_FALSE(top.last(1));
}

TEST_F(WrittenCheckpointsTest, AtTheEndTheNewestIsThereAtOnceWithTheStepOfItsWriting) {
  write("out/a/last.pth", "one", 10);
  EXPECT_EQ(look(2), "");
  EXPECT_EQ(last(9), "last.pth 2") << "unchanged since that step";
  write("out/a/last.pth", "two");
  EXPECT_EQ(last(9), "last.pth 9");
}

TEST_F(WrittenCheckpointsTest, OfAProgramThatWasKilledTheOneThatWasSeenWholeCountsWhereItIsThereStill) {
  write("out/a/1.pth", "one", 10);
  EXPECT_EQ(look(2), "");
  EXPECT_EQ(look(3, 2s), "1.pth 2");
  write("out/a/2.pth", "tw");
  EXPECT_EQ(last(9, true), "1.pth 2") << "the other may be half of one";
  EXPECT_EQ(last(9), "2.pth 9");
  write("out/a/1.pth", "one, written again", 5);
  EXPECT_EQ(last(9, true), "2.pth 9") << "better than nothing";
}

TEST_F(WrittenCheckpointsTest, NothingBelowALinkOutOfTheFolderIsACheckpoint) {
  const TemporaryFolder other;
  write_file(other / "secret.pth", "of somebody else");
  fs::create_directories(folder / "out");
  fs::create_directory_symlink(other.path(), folder / "out/a");
  EXPECT_EQ(last(1), "");
  write("out/b/mine.pth", "one", 100);
  EXPECT_EQ(last(1), "mine.pth 1");
}

TEST_F(WrittenCheckpointsTest, AProgramThatHasNoneHasNone) {
  WrittenCheckpoints none{folder.path(), ""};
  EXPECT_FALSE(none.look(1, now));
  EXPECT_FALSE(none.last(1));
}

}  // namespace
}  // namespace abl::metrics
