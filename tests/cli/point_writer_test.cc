// SPDX-License-Identifier: Apache-2.0
#include "cli/point_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

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

TEST_F(PointWriterTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THROW((PointWriter{folder_ / "absent" / "points.csv", PointFormat::kCsv}), Error);
}

}  // namespace
}  // namespace abl::cli
