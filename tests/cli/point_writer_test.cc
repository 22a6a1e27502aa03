// SPDX-License-Identifier: Apache-2.0
#include "cli/point_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace abl::cli {
namespace {

class PointWriterTest : public testing::Test {
 protected:
  ~PointWriterTest() override { std::filesystem::remove_all(folder_); }
  static ablate::v1::ExportBlock block() {
    ablate::v1::ExportBlock block;
    block.set_row("K=V, tied");
    block.set_seed(1);
    block.set_trial(2);
    block.set_run(3);
    block.mutable_series()->set_name("train/loss");
    for (const auto& [step, value] : {std::pair{10u, 0.1}, {20u, std::numeric_limits<double>::quiet_NaN()}}) {
      block.mutable_series()->add_steps(step);
      block.mutable_series()->add_values(value);
      block.mutable_series()->add_times_ms(1700000000000 + step);
    }
    return block;
  }
  std::filesystem::path folder_ = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "ablate-points-XXXXXX").string();
    return std::filesystem::path{mkdtemp(pattern.data())};
  }();
  std::filesystem::path file_ = folder_ / "points";
};

TEST_F(PointWriterTest, CsvHasALineForEachPoint) {
  PointWriter writer{file_, PointFormat::kCsv};
  writer.write("s", block());
  writer.finish();
  EXPECT_EQ(writer.points(), 2u);
  EXPECT_EQ(read_file(file_),
            "sweep,row,seed,trial,run,metric,step,value,time_ms\n"
            "s,\"K=V, tied\",1,2,3,train/loss,10,0.1,1700000000010\n"
            "s,\"K=V, tied\",1,2,3,train/loss,20,nan,1700000000020\n");
}

TEST_F(PointWriterTest, JsonLinesSpellWhatIsNotFinite) {
  PointWriter writer{file_, PointFormat::kJsonLines};
  writer.write("s", block());
  writer.finish();
  EXPECT_EQ(
      read_file(file_),
      R"({"sweep":"s","row":"K=V, tied","seed":1,"trial":2,"run":3,"metric":"train/loss","step":10,"value":0.1,"time_ms":1700000000010})"
      "\n"
      R"({"sweep":"s","row":"K=V, tied","seed":1,"trial":2,"run":3,"metric":"train/loss","step":20,"value":"NaN","time_ms":1700000000020})"
      "\n");
}

TEST_F(PointWriterTest, AnExportThatIsBrokenOffLeavesTheOldFileAndNothingElse) {
  write_file_atomically(file_, "old");
  { PointWriter{file_, PointFormat::kCsv}.write("s", block()); }
  EXPECT_EQ(read_file(file_), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder_}, {}), 1);
}

/// Standard output is a terminal as long as this lives.
class TerminalAsOutput {
 public:
  TerminalAsOutput() {
    if (screen_ < 0 || grantpt(screen_) != 0 || unlockpt(screen_) != 0) return;
    const int terminal = open(ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) return;
    std::fflush(stdout);
    before_ = dup(STDOUT_FILENO);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
  }
  ~TerminalAsOutput() {
    restore();
    if (screen_ >= 0) close(screen_);
  }
  TerminalAsOutput(const TerminalAsOutput&) = delete;
  TerminalAsOutput& operator=(const TerminalAsOutput&) = delete;
  bool is_there() const { return before_ >= 0; }
  /// What it shows of what was written, less than a page.
  std::string text() {
    std::fflush(stdout);
    std::string shown(4096, '\0');
    const ssize_t got = read(screen_, shown.data(), shown.size());
    restore();
    return shown.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }

 private:
  void restore() {
    if (before_ < 0) return;
    dup2(before_, STDOUT_FILENO);
    close(std::exchange(before_, -1));
  }
  int screen_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), before_ = -1;
};

TEST_F(PointWriterTest, ANameOfAMetricCannotCommandATerminal) {
  for (const PointFormat format : {PointFormat::kCsv, PointFormat::kJsonLines}) {
    auto named = block();
    named.mutable_series()->set_name("loss\x1b[31m\u202e\u009b2J");
    TerminalAsOutput terminal;
    if (!terminal.is_there()) GTEST_SKIP() << "needs a pseudo-terminal, of which there is none";
    PointWriter writer{{}, format};
    writer.write("s", named);
    writer.finish();
    const std::string text = terminal.text();
    EXPECT_NE(text.find("loss"), std::string::npos) << text;
    for (const char* control : {"\x1b", "\u202e", "\u009b"})
      EXPECT_EQ(text.find(control), std::string::npos) << text;
  }
}

TEST_F(PointWriterTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THROW((PointWriter{folder_ / "absent" / "points.csv", PointFormat::kCsv}), Error);
}

}  // namespace
}  // namespace abl::cli
