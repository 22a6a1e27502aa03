// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/command_files.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "tests/agent/fixtures.h"
#include "tests/temporary_folder.h"

namespace abl::agent {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class CommandFilesTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  FakeClock clock;
  TrainerOutput output{{.directory = folder.path(),
                        .host = "here",
                        .sources = {{.kind = protocol::MetricSource::Kind::kFile, .path = "r.csv"}}},
                       clock};

  std::vector<std::string> checkpoints() {
    std::vector<std::string> said;
    for (const auto& checkpoint : output.batch().checkpoints())
      said.push_back(fs::path{checkpoint.path()}.filename().string() + " " +
                     checkpoint.sha256().substr(0, 4));
    output.clear();
    return said;
  }
};

TEST_F(CommandFilesTest, FilesAreReadToTheirEndsInBatchesOfBoundedSize) {
  std::string rows = "step,a\n";
  for (int step = 0; step < 50'000; ++step) rows += std::to_string(step) + ",1\n";
  write_file(folder / "r.csv", rows);
  std::size_t points = 0, largest = 0;
  const auto take = [&] {
    for (const auto& series : output.batch().series())
      points += static_cast<std::size_t>(series.steps_size());
    largest = std::max(largest, output.batch().ByteSizeLong());
    output.clear();
    return true;
  };
  CommandFiles::read_to_end(output, take);
  output.close();
  take();
  EXPECT_EQ(points, 50'000U);
  EXPECT_LT(largest, 1U << 20) << "a batch travels by gRPC, which takes 4 MiB";
}

TEST_F(CommandFilesTest, AHoleOfATerabyteIsGivenUpAndSaid) {
  write_file(folder / "r.csv", "step,a\n1,2\n");
  fs::resize_file(folder / "r.csv", std::uintmax_t{1} << 40);
  CommandFiles::read_to_end(
      output, [&] { return output.clear(), true; }, 300ms);
  EXPECT_EQ(output.batch().refused_example(),
            "files of command.metrics (not read to their ends: that took too long)");
}

TEST_F(CommandFilesTest, WhoIsKilledReadsNoMore) {
  write_file(folder / "r.csv", "step,a\n1,2\n");
  fs::resize_file(folder / "r.csv", std::uintmax_t{1} << 40);
  int pieces = 0;
  CommandFiles::read_to_end(output, [&] { return ++pieces < 3; });
  EXPECT_EQ(pieces, 3);
  EXPECT_EQ(output.batch().refused_lines(), 0U);
}

TEST_F(CommandFilesTest, TheLastCheckpointIsTakenHoldOfBeforeItIsRead) {
  CommandFiles files{folder.path(), "*.pt"};
  files.say_last_checkpoint(output, false, true);
  EXPECT_THAT(checkpoints(), IsEmpty());
  write_file(folder / "a.pt", "abc");
  files.say_last_checkpoint(output, false, true);
  EXPECT_THAT(checkpoints(), ElementsAre("a.pt ba78"));
  files.say_last_checkpoint(output, false, false);
  EXPECT_THAT(checkpoints(), ElementsAre("a.pt "));
}

}  // namespace
}  // namespace abl::agent
