// SPDX-License-Identifier: Apache-2.0
// Numbers in files of the run's folder: what other programs do to them while they are read.
#include "worker/metrics/finder.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "tests/metrics/collected.h"
#include "tests/protocol/event_records.h"
#include "tests/temporary_folder.h"

namespace abl::metrics {
namespace {

namespace fs = std::filesystem;
using protocol::MetricSource;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class FinderTest : public testing::Test {
 protected:
  void append(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream{folder / name, std::ios::app | std::ios::binary} << text;
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    std::ofstream{folder / name, std::ios::binary} << text;  // cut off and written anew
  }
  void replace(const std::string& name, const std::string& text) const {
    write_file(folder / "new", text);
    fs::rename(folder / "new", folder / name);
  }
  /// What a look finds that was not found before.
  std::vector<Collected::Point> look() {
    found.points.clear();
    while (finder->look(found)) continue;
    return found.points;
  }
  std::vector<Collected::Point> close() {
    look();
    finder->close(found);
    return found.points;
  }
  void read(MetricSource source, std::uint32_t resume_step = 0) {
    finder.emplace(std::vector<MetricSource>{std::move(source)}, folder.path(), resume_step);
  }
  void read_csv(const std::string& path) { read({.kind = MetricSource::Kind::kFile, .path = path}); }

  TemporaryFolder folder;
  Collected found;
  std::optional<Finder> finder;
};

TEST_F(FinderTest, ATableIsReadAsItGrows) {
  read_csv("out/results.csv");
  EXPECT_THAT(look(), IsEmpty()) << "it is not there yet";
  append("out/results.csv", "");
  EXPECT_THAT(look(), IsEmpty());
  append("out/results.csv", "epoch,acc,note\n1,0.5,warm-up\n2,0.");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("acc", 1, 0.5)));
  append("out/results.csv", "625,\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("acc", 2, 0.625)));
  EXPECT_THAT(look(), IsEmpty());
  append("out/results.csv", "3,0.75,");
  EXPECT_THAT(close(), ElementsAre(FieldsAre("acc", 3, 0.75)))
      << "the last line needs no end once nobody writes";
  EXPECT_EQ(finder->lacking(), "");
}

TEST_F(FinderTest, ATableThatIsWrittenAnewWithItsOldRowsSaysTheNewOnesAlone) {
  read_csv("r.csv");
  write("r.csv", "step,a\n1,1\n2,2\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("a", 1, 1.0), FieldsAre("a", 2, 2.0)));
  write("r.csv", "step,a\n1,1\n2,2\n3,3\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("a", 3, 3.0)));
  replace("r.csv", "step,a\n1,1\n2,2\n3,3\n4,4\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("a", 4, 4.0)));
  write("r.csv", "");
  EXPECT_THAT(look(), IsEmpty()) << "while it is empty";
  write("r.csv", "step,a,b\n1,1,9\n2,2,8\n3,3,7\n4,4,6\n5,5,5\n");
  EXPECT_THAT(look(),
              UnorderedElementsAre(FieldsAre("b", 1, 9.0), FieldsAre("b", 2, 8.0), FieldsAre("b", 3, 7.0),
                                   FieldsAre("b", 4, 6.0), FieldsAre("b", 5, 5.0), FieldsAre("a", 5, 5.0)))
      << "with a column more, which its header says now";
}

TEST_F(FinderTest, ACommaInATablesNumberIsNotGuessedAt) {
  read_csv("r.csv");
  write("r.csv", "step;a;b\n1;97,125;3\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("b", 1, 3.0)));
}

TEST_F(FinderTest, WhatAnotherFileIsPutInThePlaceOfIsReadToItsEndFirst) {
  read_csv("r.csv");
  write("r.csv", "step,a\n1,1\n");
  look();
  append("r.csv", "2,2\n");
  replace("r.csv", "step,a\n3,3\n");
  EXPECT_THAT(look(), ElementsAre(FieldsAre("a", 2, 2.0), FieldsAre("a", 3, 3.0)));
}

TEST_F(FinderTest, NamesAndTheStepAreAsTheSourceSays) {
  read({.kind = MetricSource::Kind::kFile,
        .path = "output/*/summary.csv",
        .names = {{"eval_top1", "val/top1"}},
        .step = "it",
        .split = "x"});
  write("output/b/summary.csv", "it,train_loss,eval_top1\n10,2.5,60%\n");
  write("output/c/other.csv", "it,q\n1,1\n");
  EXPECT_THAT(close(), ElementsAre(FieldsAre("x/train_loss", 10, 2.5), FieldsAre("val/top1", 10, 60.0)));
  EXPECT_THAT(found.steps, ElementsAre(10U, 10U));
}

TEST_F(FinderTest, RowsMayBeCountedFromTheCheckpointOn) {
  read({.kind = MetricSource::Kind::kFile, .path = "r.jsonl", .step = "count"}, 7);
  write("r.jsonl", "{\"acc\": 0.5}\n{\"note\": \"x\"}\n{\"acc\": 0.75}\n");
  EXPECT_THAT(close(), ElementsAre(FieldsAre("acc", 8, 0.5), FieldsAre("acc", 9, 0.75)));
}

TEST_F(FinderTest, WhatATableLacksIsSaid) {
  read_csv("results.csv");
  close();
  EXPECT_EQ(finder->lacking(), "no file 'results.csv' in the run's folder");
  write("results.csv", "");
  close();
  EXPECT_EQ(finder->lacking(), "'results.csv' is empty");
  write("results.csv", "a,b\n");
  close();
  EXPECT_EQ(finder->lacking(), "'results.csv' has no row with a number");
  append("results.csv", "1,2\n");
  close();
  EXPECT_EQ(finder->lacking(),
            "'results.csv' has no number with a step: none of its columns is named step, global_step, _step, "
            "epoch, "
            "iteration or iter; it has a, b: say which is the step, or 'step: count'");
  EXPECT_THAT(found.refused, ElementsAre(HasSubstr("a=1, b=2: none of its columns")));
  read({.kind = MetricSource::Kind::kFile, .path = "results.csv", .step = "aa"});
  close();
  EXPECT_THAT(finder->lacking(), HasSubstr("no column 'aa'; it has a, b; did you mean 'a'?"));
  read({.kind = MetricSource::Kind::kFile, .path = "results.csv", .names = {{"accu", "x"}}, .step = "a"});
  append("results.csv", "a,b,accur\n");
  close();
  EXPECT_EQ(finder->lacking(), "no column 'accu' in 'results.csv'; did you mean 'accur'?");
}

TEST_F(FinderTest, TheWorkersOwnRecordIsNoSource) {
  read_csv("*.csv");
  write("metrics.csv", "step,metric,value\n1,acc,0.5\n");
  write("mine.csv", "step,a\n1,2\n");
  EXPECT_THAT(close(), ElementsAre(FieldsAre("a", 1, 2.0)));
}

TEST_F(FinderTest, NothingOutsideOfTheFolderIsReadAndNoPipeIsWaitedFor) {
  const TemporaryFolder other;
  write_file(other / "secret.csv", "step,a\n1,2\n");
  fs::create_symlink(other / "secret.csv", folder / "r.csv");
  read_csv("r.csv");
  EXPECT_THAT(close(), IsEmpty());
  EXPECT_EQ(finder->lacking(), "'r.csv' lies outside of the run's folder");
  fs::remove(folder / "r.csv");
  ASSERT_EQ(::mkfifo((folder / "r.csv").c_str(), 0600), 0);
  read_csv("r.csv");
  EXPECT_THAT(close(), IsEmpty());
  EXPECT_EQ(finder->lacking(), "'r.csv' is not a file");
}

TEST_F(FinderTest, EventFilesOfAFolderAreReadAsTheyGrow) {
  using namespace protocol;
  read({.kind = MetricSource::Kind::kTensorboard, .path = "runs", .names = {{"acc/val", "val/top1"}}});
  const std::string first = "runs/Nov27_00-24-16_host/events.out.tfevents.1.host.0";
  const std::string second = scalar_record(2, "acc/val", 0.5F);
  append(first, first_record() + scalar_record(1, "acc/val", 0.25F) + second.substr(0, 30));
  EXPECT_THAT(look(), ElementsAre(FieldsAre("val/top1", 1, 0.25)));
  append(first, second.substr(30));
  append("runs/train/events.out.tfevents.2.host", scalar_record(1, "loss", 2.5F));
  append("runs/train/notes.txt", "no events");
  EXPECT_THAT(close(), UnorderedElementsAre(FieldsAre("val/top1", 2, 0.5), FieldsAre("train/loss", 1, 2.5)))
      << "a folder is a part of the name, but for one that is named after the start";
  EXPECT_EQ(finder->lacking(), "");
}

TEST_F(FinderTest, AFolderThatTellsOfTheNumbersIsAPartOfTheName) {
  using namespace protocol;
  read({.kind = MetricSource::Kind::kTensorboard, .path = "runs"});
  for (const char* folder : {"bs1024_lr0.0010_seed12", "bs2048_lr0.0010_seed12", "20261127-002416-vit",
                             "1732667056", "version_3", "version_of_mine"})
    append(std::string{"runs/"} + folder + "/events.out.tfevents.1", scalar_record(1, folder, 0.5F));
  std::vector<std::string> names;
  for (const auto& [name, step, value] : close()) names.push_back(name);
  EXPECT_THAT(names,
              UnorderedElementsAre("bs1024_lr0.0010_seed12/bs1024_lr0.0010_seed12",
                                   "bs2048_lr0.0010_seed12/bs2048_lr0.0010_seed12", "20261127-002416-vit",
                                   "1732667056", "version_3", "version_of_mine/version_of_mine"));
}

TEST_F(FinderTest, AValueOfTheLogNeverGetsTheStepOfAFile) {
  finder.emplace(
      std::vector<MetricSource>{{.patterns = {"epoch (?<epoch>\\d+)$", "acc (?<acc>\\S+)"}, .step = "last"},
                                {.patterns = {"at (?<epoch>\\d+) loss (?<loss>\\S+)"}},
                                {.kind = MetricSource::Kind::kFile, .path = "r.csv"}},
      folder.path(), 0);
  const auto say = [&](const std::string& line) {
    finder->read_log(MetricSource::Stream::kStdout, line + "\n", found);
  };
  say("at 1 loss 3");
  write("r.csv", "step,a\n700,1\n");
  look();
  say("acc 0.5");
  found.points.clear();
  finder->close(found);
  EXPECT_THAT(found.points, UnorderedElementsAre(FieldsAre("acc", 1, 0.5), FieldsAre("loss", 1, 3.0)));
}

TEST_F(FinderTest, ALookEndsWhereNoMoreIsTakenAndTheNextOneGoesOn) {
  finder.emplace(std::vector<MetricSource>{{.kind = MetricSource::Kind::kFile, .path = "a*.csv"},
                                           {.kind = MetricSource::Kind::kFile, .path = "b.csv"}},
                 folder.path(), 0);
  std::string rows = "step,x\n";
  for (int step = 0; step < 20'000; ++step) rows += std::to_string(step) + ",1\n";
  for (const char* name : {"a1.csv", "a2.csv", "b.csv"}) write(name, rows);
  found.most_points = 1;
  std::size_t looks = 0, most = 0, points = 0;
  for (bool more = true; more; ++looks) {
    found.points.clear();
    more = finder->look(found);
    points += found.points.size();
    most = std::max(most, found.points.size());
  }
  EXPECT_EQ(points, 60'000U);
  EXPECT_GT(looks, 6U);
  EXPECT_LT(most, 20'000U) << "a piece of one file at once";
}

TEST_F(FinderTest, ALinkThatLeadsNowhereIsPassedOver) {
  fs::create_symlink(folder / "nowhere", folder / "r.csv");
  fs::create_symlink(folder / "loop", folder / "loop");
  fs::create_directory(folder / "runs");
  fs::create_symlink(folder / "nowhere", folder / "runs/events.out.tfevents.1");
  finder.emplace(std::vector<MetricSource>{{.kind = MetricSource::Kind::kFile, .path = "*"},
                                           {.kind = MetricSource::Kind::kTensorboard, .path = "runs"}},
                 folder.path(), 0);
  EXPECT_THAT(close(), IsEmpty());
  EXPECT_EQ(finder->lacking(), "no file '*' in the run's folder");
}

TEST_F(FinderTest, WhatEventFilesLackIsSaid) {
  using namespace protocol;
  read({.kind = MetricSource::Kind::kTensorboard, .path = "runs", .names = {{"ac", "x"}}});
  close();
  EXPECT_EQ(finder->lacking(), "no event file of TensorBoard in 'runs' of the run's folder");
  const std::string whole = scalar_record(1, "acc", 0.5F);
  append("runs/events.out.tfevents.1", first_record());
  close();
  EXPECT_EQ(finder->lacking(), "'runs/events.out.tfevents.1' has no scalar");
  append("runs/events.out.tfevents.1", whole + whole.substr(0, 20));
  close();
  EXPECT_EQ(finder->lacking(), "no tag 'ac' in 'runs'; did you mean 'acc'?");
  EXPECT_THAT(
      found.notes,
      ElementsAre(
          "'runs/events.out.tfevents.1' ends in the middle of a record, of which 20 bytes are there"));
  append("runs/events.out.tfevents.2", "this is not a TFRecord");
  close();
  EXPECT_THAT(found.refused,
              ElementsAre(HasSubstr("runs/events.out.tfevents.2: the length of the record at byte 0 is "
                                    "damaged; the rest of the file is not read")));
}

}  // namespace
}  // namespace abl::metrics
