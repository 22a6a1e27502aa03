// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/spool.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "base/error.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using testing::ElementsAre;

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{folder}, {}));
}

class SpoolTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path place = folder.path() / "12";
  std::filesystem::path file = place / "segment-00000000000000000001";

  static RunBatch log(const std::string& text) {
    RunBatch batch;
    batch.set_log(text);
    return batch;
  }
  static RunBatch end() {
    RunBatch batch;
    batch.mutable_ended()->set_status(ablate::v1::RunEnded::STATUS_COMPLETED);
    return batch;
  }
  static std::vector<std::string> logs_after(RunSpool& spool, std::uint64_t seq) {
    std::vector<std::string> logs;
    while (const auto batch = spool.after(seq)) {
      logs.push_back(batch->log());
      seq = batch->seq();
    }
    return logs;
  }
};

TEST_F(SpoolTest, BatchesAreNumberedFromOneAndComeBackInOrder) {
  RunSpool spool{place, 12};
  EXPECT_FALSE(spool.after(0));
  spool.append(log("a"));
  spool.append(log("b"));
  const auto first = spool.after(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->run(), 12U);
  EXPECT_EQ(first->seq(), 1U);
  EXPECT_THAT(logs_after(spool, 0), ElementsAre("a", "b"));
  EXPECT_THAT(logs_after(spool, 1), ElementsAre("b"));
}

TEST_F(SpoolTest, ReopenedItGoesOnWhereItWas) {
  {
    RunSpool spool{place, 12};
    spool.append(log("a"));
    spool.append(log("b"));
  }
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.last(), 2U);
  EXPECT_FALSE(spool.ended());
  spool.append(end());
  EXPECT_EQ(spool.after(2)->seq(), 3U);
  EXPECT_TRUE(spool.ended());
  EXPECT_TRUE((RunSpool{place, 12}.ended()));
}

TEST_F(SpoolTest, NothingIsOnDiskBeforeTheFirstIsWritten) {
  RunSpool spool{place, 12, "token"};
  EXPECT_EQ(spool.last(), 0U);
  EXPECT_FALSE(std::filesystem::exists(place));
  spool.remove();
  RunSpool other{place, 12, "token"};
  other.append(log("a"));
  EXPECT_EQ((RunSpool{place, 12}.token()), "token");
}

TEST_F(SpoolTest, TheNewestBatchIsTakenOnceWithoutTheDiskAndMayBeReadAgain) {
  RunSpool spool{place, 12};
  spool.append(log("a"));
  EXPECT_FALSE(spool.take_newest(1));
  const auto taken = spool.take_newest(0);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->seq(), 1U);
  EXPECT_EQ(taken->log(), "a");
  EXPECT_FALSE(spool.take_newest(0));
  EXPECT_THAT(logs_after(spool, 0), ElementsAre("a"));
  spool.append(log("b"));
  spool.append(log("c"));
  EXPECT_FALSE(spool.take_newest(1)) << "the one before it is not said yet";
  EXPECT_EQ(spool.take_newest(2)->log(), "c");
  spool.append_in_memory(end());
  EXPECT_FALSE(spool.take_newest(3));
  EXPECT_EQ(spool.after(3)->seq(), 4U);
}

TEST_F(SpoolTest, WhatIsKeptOfTheProgramIsNoBatchAndOutlivesItsSegment) {
  {
    RunSpool spool{place, 12, "token"};
    spool.keep_program("folder\n");
    EXPECT_EQ(spool.last(), 0U);
    EXPECT_FALSE(spool.after(0));
    spool.append(log("a"));
    spool.keep_program("folder\ngroup\n");
    spool.append(log("b"));
    EXPECT_THAT(logs_after(spool, 0), ElementsAre("a", "b"));
    EXPECT_THAT(logs_after(spool, 1), ElementsAre("b"));
  }
  {
    RunSpool spool{place, 12};
    EXPECT_EQ(spool.program(), "folder\ngroup\n");
    EXPECT_EQ(spool.token(), "token");
    EXPECT_THAT(logs_after(spool, 0), ElementsAre("a", "b"));
    spool.append(log(std::string(600'000, 'x')));
    spool.append(log("c"));
    spool.acknowledge(3);
    EXPECT_EQ(files_in(place), 1U);
  }
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.program(), "folder\ngroup\n");
  EXPECT_EQ(spool.last(), 4U);
  EXPECT_THAT(logs_after(spool, 3), ElementsAre("c"));
}

TEST_F(SpoolTest, ARunOfWhichOnlyTheProgramIsKeptHasNoBatch) {
  RunSpool{place, 12, "token"}.keep_program("folder\n");
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.program(), "folder\n");
  EXPECT_EQ(spool.token(), "token");
  EXPECT_EQ(spool.last(), 0U);
  spool.append(end());
  EXPECT_EQ(spool.after(0)->seq(), 1U);
}

TEST_F(SpoolTest, WhatAnEarlierVersionKeptOfTheProgramIsRead) {
  write_text(place / "program", "folder\ngroup\n");
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.program(), "folder\ngroup\n");
  spool.remove();
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST_F(SpoolTest, ATornRecordAtTheEndIsDroppedAndItsNumberUsedAgain) {
  std::uintmax_t whole = 0;
  {
    RunSpool spool{place, 12};
    spool.append(log("a"));
    whole = std::filesystem::file_size(file);
    spool.append(log("the record that is torn"));
  }
  const auto full = std::filesystem::file_size(file);
  for (auto size = full - 1; size > whole; --size) {
    std::filesystem::resize_file(file, size);
    RunSpool spool{place, 12};
    ASSERT_EQ(spool.last(), 1U) << "cut at byte " << size;
    spool.append(log("the record that is torn"));
    ASSERT_THAT(logs_after(spool, 0), ElementsAre("a", "the record that is torn"));
  }
}

TEST_F(SpoolTest, ARecordWithAWrongChecksumIsDropped) {
  {
    RunSpool spool{place, 12};
    spool.append(log("a"));
    spool.append(log("b"));
  }
  std::fstream bytes{file, std::ios::in | std::ios::out | std::ios::binary};
  bytes.seekp(-1, std::ios::end);
  bytes.put('c');
  bytes.close();
  RunSpool spool{place, 12};
  EXPECT_THAT(logs_after(spool, 0), ElementsAre("a"));
}

TEST_F(SpoolTest, AcknowledgedBatchesLeaveTheDiskButTheirCountDoesNot) {
  const std::string large(600'000, 'x');  // a segment each
  {
    RunSpool spool{place, 12};
    for (int i = 0; i < 5; ++i) spool.append(log(large));
    spool.append(log("last"));
    EXPECT_EQ(files_in(place), 6U);
    spool.acknowledge(5);
    EXPECT_EQ(files_in(place), 1U);
    EXPECT_LT(spool.bytes(), 100U);
    EXPECT_THAT(logs_after(spool, 0), ElementsAre("last"));
    spool.acknowledge(6);
    EXPECT_EQ(spool.acknowledged(), 6U);
    spool.append(log("more"));
    EXPECT_THAT(logs_after(spool, 6), ElementsAre("more"));
  }
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.last(), 7U);
  EXPECT_THAT(logs_after(spool, 0), ElementsAre("last", "more"));
}

TEST_F(SpoolTest, ReadingMayGoBackAndForthOverManySegments) {
  RunSpool spool{place, 12};
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(std::to_string(i) + std::string(100'000, 'x'));
    spool.append(log(all.back()));
  }
  EXPECT_EQ(files_in(place), 7U);
  EXPECT_EQ(logs_after(spool, 0), all);
  EXPECT_EQ(spool.after(20)->log(), all[20]);
  EXPECT_EQ(spool.after(3)->log(), all[3]);
  EXPECT_EQ(spool.after(38)->log(), all[39 - 1]);
  EXPECT_FALSE(spool.after(40));
  RunSpool again{place, 12};
  EXPECT_EQ(logs_after(again, 0), all);
}

TEST_F(SpoolTest, AnAcknowledgementNeedsNoRoomOnTheDisk) {
  RunSpool spool{place, 12};
  for (int i = 0; i < 8; ++i) spool.append(log(std::string(300'000, 'x')));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit none = unlimited;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &none);
  spool.acknowledge(8);
  EXPECT_EQ(files_in(place), 1U);
  spool.remove();
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_FALSE(std::filesystem::exists(place));
}

TEST_F(SpoolTest, BatchesMayBeReadAndAcknowledgedWhileMoreAreWritten) {
  RunSpool spool{place, 12};
  constexpr std::uint64_t kAll = 3000;
  std::jthread writer{[&] {
    for (std::uint64_t i = 0; i < kAll; ++i) spool.append(log(std::to_string(i) + std::string(2000, 'x')));
  }};
  std::uint64_t seq = 0;
  ASSERT_TRUE(eventually([&] {
    while (const auto batch = spool.after(seq)) {
      EXPECT_EQ(batch->seq(), seq + 1);
      seq = batch->seq();
      spool.acknowledge(seq);
    }
    return seq == kAll;
  }));
  EXPECT_EQ(files_in(place), 1U);
}

TEST_F(SpoolTest, ADamagedSegmentTakesWhatFollowsItWithIt) {
  {
    RunSpool spool{place, 12};
    for (int i = 0; i < 6; ++i) spool.append(log(std::to_string(i) + std::string(300'000, 'x')));
    EXPECT_EQ(files_in(place), 3U);
  }
  std::filesystem::resize_file(place / "segment-00000000000000000003", 400'000);
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.last(), 3U) << "numbers must stay without gaps";
  spool.append(log("next"));
  EXPECT_EQ(logs_after(spool, 3), std::vector<std::string>{"next"});
}

/// The records of an earlier version's one file, taken from segments.
void as_one_file(const std::filesystem::path& place) {
  std::vector<std::filesystem::path> segments;
  for (const auto& entry : std::filesystem::directory_iterator{place}) segments.push_back(entry.path());
  std::sort(segments.begin(), segments.end());
  std::ofstream old{place / "batches", std::ios::binary};
  for (const auto& segment : segments) {
    old << std::ifstream{segment, std::ios::binary}.rdbuf();
    std::filesystem::remove(segment);
  }
}

TEST_F(SpoolTest, TheOneFileOfAnEarlierVersionIsReadAndGoneOnWith) {
  std::vector<std::string> all;
  {
    RunSpool spool{place, 12};
    for (int i = 0; i < 12; ++i) {
      all.push_back(std::to_string(i) + std::string(300'000, 'x'));
      spool.append(log(all.back()));
    }
    spool.acknowledge(2);  // so the old file begins with the third, as a compacted one did
  }
  as_one_file(place);
  all.erase(all.begin(), all.begin() + 2);
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.last(), 12U);
  EXPECT_EQ(logs_after(spool, 2), all);
  spool.append(end());
  EXPECT_EQ(spool.after(12)->seq(), 13U);
  spool.acknowledge(12);
  EXPECT_FALSE(std::filesystem::exists(place / "batches"));
  EXPECT_TRUE((RunSpool{place, 12}.ended()));
}

TEST_F(SpoolTest, AnEmptyFileOfAnEarlierVersionIsNoBatch) {
  write_text(place / "batches", "");
  RunSpool spool{place, 12};
  EXPECT_EQ(spool.last(), 0U);
  spool.append(log("a"));
  EXPECT_THAT(logs_after(spool, 0), ElementsAre("a"));
}

TEST_F(SpoolTest, AnAcknowledgementBeyondTheLastBatchCountsAsTheLast) {
  RunSpool spool{place, 12};
  spool.append(log("a"));
  spool.acknowledge(100);
  EXPECT_EQ(spool.acknowledged(), 1U);
  spool.acknowledge(0);
  EXPECT_EQ(spool.acknowledged(), 1U);
}

TEST_F(SpoolTest, AFullDiskIsReportedAndWhatWasThereStaysWhole) {
  RunSpool spool{place, 12};
  spool.append(log("a"));
  const auto before = std::filesystem::file_size(file);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit small = unlimited;
  small.rlim_cur = before + 100;
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(spool.append(log(std::string(1000, 'x'))), Error);
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_EQ(std::filesystem::file_size(file), before);
  spool.append_in_memory(end());
  EXPECT_TRUE(spool.ended());
  EXPECT_EQ(spool.after(1)->seq(), 2U);
  EXPECT_EQ((RunSpool{place, 12}.last()), 1U);
}

TEST_F(SpoolTest, OnlyFoldersNamedByANumberAreRuns) {
  for (const char* name : {"7", "12", "x", "12x"}) std::filesystem::create_directories(folder.path() / name);
  write_text(folder.path() / "9", "a file");
  EXPECT_THAT(spooled_runs(folder.path()), ElementsAre(7U, 12U));
  EXPECT_THAT(spooled_runs(folder.path() / "absent"), ElementsAre());
  RunSpool spool{place, 12};
  spool.remove();
  EXPECT_THAT(spooled_runs(folder.path()), ElementsAre(7U));
}

}  // namespace
}  // namespace abl::agent
