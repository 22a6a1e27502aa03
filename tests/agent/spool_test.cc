// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/spool.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>

#include "base/crc32.h"
#include "base/error.h"
#include "base/file.h"
#include "tests/agent/fixtures.h"

namespace abl::agent {
namespace {

using ablate::v1::RunBatch;
using testing::ElementsAre;

class SpoolTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path place = folder.path() / "spool";
  std::filesystem::path file = place / "1.spool";
  std::optional<SpoolFiles> files{place};

  std::unique_ptr<RunSpool> begun() { return std::make_unique<RunSpool>(*files, 12, "token"); }
  /// As the next program finds what this one leaves when it is killed.
  std::unique_ptr<RunSpool> reopened() {
    auto spools = all_reopened();
    EXPECT_EQ(spools.size(), 1U);
    return spools.empty() ? nullptr : std::move(spools.front());
  }
  std::vector<std::unique_ptr<RunSpool>> all_reopened() {
    files.emplace(place);
    return read_spools(*files);
  }
  /// Those that hold something.
  std::size_t used_files() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        std::filesystem::directory_iterator{place},
        [](const auto& entry) { return entry.is_directory() || entry.file_size() > 0; }));
  }

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
  const auto spool = begun();
  EXPECT_FALSE(spool->after(0));
  spool->append(log("a"));
  spool->append(log("b"));
  const auto first = spool->after(0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->run(), 12U);
  EXPECT_EQ(first->seq(), 1U);
  EXPECT_EQ(first->token(), "token");
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a", "b"));
  EXPECT_THAT(logs_after(*spool, 1), ElementsAre("b"));
}

TEST_F(SpoolTest, ReadAgainItGoesOnWhereItWas) {
  auto spool = begun();
  spool->append(log("a"));
  spool->append(log("b"));
  spool = reopened();
  EXPECT_EQ(spool->run(), 12U);
  EXPECT_EQ(spool->token(), "token");
  EXPECT_EQ(spool->last(), 2U);
  EXPECT_FALSE(spool->ended());
  spool->append(end());
  EXPECT_EQ(spool->after(2)->seq(), 3U);
  EXPECT_TRUE(spool->ended());
  EXPECT_TRUE(reopened()->ended());
}

TEST_F(SpoolTest, NothingIsOnDiskBeforeTheFirstIsKept) {
  begun()->remove();
  EXPECT_FALSE(std::filesystem::exists(place));
  EXPECT_TRUE(all_reopened().empty());
}

TEST_F(SpoolTest, AFileThatIsNotNeededAnyMoreServesTheNextRun) {
  for (std::uint32_t run = 1; run <= 100; ++run) {
    RunSpool spool{*files, run, "token"};
    spool.keep_program("a folder");
    spool.append(log("a"));
    EXPECT_THAT(logs_after(spool, 0), ElementsAre("a"));
    spool.remove();
  }
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{place}, {}), 1);
  EXPECT_EQ(used_files(), 0U);
  EXPECT_TRUE(all_reopened().empty()) << "what is empty is nobody's";
  files.reset();
  EXPECT_TRUE(std::filesystem::is_empty(place)) << "nor is it left";
}

TEST_F(SpoolTest, OfManyEmptyFilesAFewAreKept) {
  std::vector<std::unique_ptr<RunSpool>> spools;
  for (std::uint32_t run = 1; run <= 200; ++run) {
    spools.push_back(std::make_unique<RunSpool>(*files, run, "token"));
    spools.back()->append(log(std::to_string(run)));
  }
  EXPECT_EQ(used_files(), 200U);
  for (const auto& spool : spools) {
    EXPECT_THAT(logs_after(*spool, 0), ElementsAre(std::to_string(spool->run())));
    spool->remove();
  }
  EXPECT_LE(std::distance(std::filesystem::directory_iterator{place}, {}), 100);
}

TEST_F(SpoolTest, TheNewestBatchIsTakenOnceWithoutTheDiskAndMayBeReadAgain) {
  const auto spool = begun();
  spool->append(log("a"));
  EXPECT_FALSE(spool->take_newest(1));
  const auto taken = spool->take_newest(0);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->seq(), 1U);
  EXPECT_EQ(taken->log(), "a");
  EXPECT_FALSE(spool->take_newest(0));
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
  spool->append(log("b"));
  spool->append(log("c"));
  EXPECT_FALSE(spool->take_newest(1)) << "the one before it is not said yet";
  EXPECT_EQ(spool->take_newest(2)->log(), "c");
  spool->append_in_memory(end());
  EXPECT_FALSE(spool->take_newest(3));
  EXPECT_EQ(spool->after(3)->seq(), 4U);
}

TEST_F(SpoolTest, WhatIsKeptOfTheProgramIsNoBatchAndOutlivesItsSegment) {
  auto spool = begun();
  spool->keep_program("folder");
  EXPECT_EQ(spool->last(), 0U);
  EXPECT_FALSE(spool->after(0));
  spool->append(log("a"));
  spool->keep_program("folder, group");
  spool->append(log("b"));
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a", "b"));
  EXPECT_THAT(logs_after(*spool, 1), ElementsAre("b"));
  spool = reopened();
  EXPECT_EQ(spool->program(), "folder, group");
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a", "b"));
  spool->append(log(std::string(600'000, 'x')));
  spool->append(log("c"));
  spool->acknowledge(3);
  EXPECT_EQ(used_files(), 1U);
  spool = reopened();
  EXPECT_EQ(spool->program(), "folder, group");
  EXPECT_EQ(spool->token(), "token");
  EXPECT_EQ(spool->last(), 4U);
  EXPECT_THAT(logs_after(*spool, 3), ElementsAre("c"));
}

TEST_F(SpoolTest, ARunOfWhichOnlyTheProgramIsKeptHasNoBatch) {
  begun()->keep_program("folder");
  const auto spool = reopened();
  EXPECT_EQ(spool->program(), "folder");
  EXPECT_EQ(spool->token(), "token");
  EXPECT_EQ(spool->last(), 0U);
  spool->append(end());
  EXPECT_EQ(spool->after(0)->seq(), 1U);
}

TEST_F(SpoolTest, ATornRecordAtTheEndIsDroppedAndItsNumberUsedAgain) {
  auto spool = begun();
  spool->append(log("a"));
  const auto whole = std::filesystem::file_size(file);
  spool->append(log("the record that is torn"));
  const auto full = std::filesystem::file_size(file);
  for (auto size = full - 1; size > whole; --size) {
    spool.reset();
    std::filesystem::resize_file(file, size);
    spool = reopened();
    ASSERT_EQ(spool->last(), 1U) << "cut at byte " << size;
    spool->append(log("the record that is torn"));
    ASSERT_THAT(logs_after(*spool, 0), ElementsAre("a", "the record that is torn"));
  }
}

TEST_F(SpoolTest, AFileWhoseFirstRecordIsTornIsNobodys) {
  begun()->append(log("a"));
  std::filesystem::resize_file(file, 10);
  EXPECT_TRUE(all_reopened().empty());
  EXPECT_EQ(used_files(), 0U);
}

TEST_F(SpoolTest, ARecordWithAWrongChecksumIsDropped) {
  auto spool = begun();
  spool->append(log("a"));
  spool->append(log("b"));
  spool.reset();
  std::fstream bytes{file, std::ios::in | std::ios::out | std::ios::binary};
  bytes.seekp(-1, std::ios::end);
  bytes.put('c');
  bytes.close();
  spool = reopened();
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
}

TEST_F(SpoolTest, AcknowledgedBatchesLeaveTheDiskButTheirCountDoesNot) {
  const std::string large(600'000, 'x');  // a segment each
  auto spool = begun();
  for (int i = 0; i < 5; ++i) spool->append(log(large));
  spool->append(log("last"));
  EXPECT_EQ(used_files(), 6U);
  spool->acknowledge(5);
  EXPECT_EQ(used_files(), 1U);
  EXPECT_LT(spool->bytes(), 100U);
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("last"));
  spool->acknowledge(6);
  EXPECT_EQ(spool->acknowledged(), 6U);
  spool->append(log("more"));
  EXPECT_THAT(logs_after(*spool, 6), ElementsAre("more"));
  spool = reopened();
  EXPECT_EQ(spool->last(), 7U);
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("last", "more"));
}

TEST_F(SpoolTest, ReadingMayGoBackAndForthOverManySegments) {
  auto spool = begun();
  std::vector<std::string> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(std::to_string(i) + std::string(100'000, 'x'));
    spool->append(log(all.back()));
  }
  EXPECT_EQ(used_files(), 7U);
  EXPECT_EQ(logs_after(*spool, 0), all);
  EXPECT_EQ(spool->after(20)->log(), all[20]);
  EXPECT_EQ(spool->after(3)->log(), all[3]);
  EXPECT_EQ(spool->after(38)->log(), all[39 - 1]);
  EXPECT_FALSE(spool->after(40));
  spool = reopened();
  EXPECT_EQ(logs_after(*spool, 0), all);
}

TEST_F(SpoolTest, AnAcknowledgementNeedsNoRoomOnTheDisk) {
  const auto spool = begun();
  for (int i = 0; i < 8; ++i) spool->append(log(std::string(300'000, 'x')));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit none = unlimited;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &none);
  spool->acknowledge(8);
  EXPECT_EQ(used_files(), 1U);
  spool->remove();
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_EQ(used_files(), 0U);
}

TEST_F(SpoolTest, BatchesMayBeReadAndAcknowledgedWhileMoreAreWritten) {
  const auto spool = begun();
  constexpr std::uint64_t kAll = 3000;
  std::jthread writer{[&] {
    for (std::uint64_t i = 0; i < kAll; ++i) spool->append(log(std::to_string(i) + std::string(2000, 'x')));
  }};
  std::uint64_t seq = 0;
  ASSERT_TRUE(eventually([&] {
    while (const auto batch = spool->after(seq)) {
      EXPECT_EQ(batch->seq(), seq + 1);
      seq = batch->seq();
      spool->acknowledge(seq);
    }
    return seq == kAll;
  }));
  EXPECT_EQ(used_files(), 1U);
}

TEST_F(SpoolTest, RunsMayWriteAndGoWhileOthersBegin) {
  std::vector<std::jthread> threads;
  for (std::uint32_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < 50; ++i) {
        const std::uint32_t run = thread * 1000 + i;
        RunSpool spool{*files, run, "token"};
        spool.append(log(std::to_string(run)));
        EXPECT_THAT(logs_after(spool, 0), ElementsAre(std::to_string(run)));
        spool.remove();
      }
    });
  threads.clear();
  EXPECT_EQ(used_files(), 0U);
}

TEST_F(SpoolTest, WhatAnotherRunLeftBehindItsRecordsIsNotTakenForItsOwn) {
  // as a crash of the machine may leave a file that was emptied and used again: of the old size
  const auto other = place / "2.spool";
  std::vector<std::string> left;
  {
    const auto spool = begun();
    spool->keep_program("folder");
    spool->append(log("a"));
    for (const auto& [run, token] : {std::pair{13, "token"}, std::pair{12, "of another results file"}}) {
      RunSpool before{*files, static_cast<std::uint32_t>(run), token};
      before.append(log("of another"));
      for (const bool is_note : {true, false}) {
        const auto size = std::filesystem::file_size(other);
        if (is_note)
          before.keep_program("another folder");
        else
          before.append(log("of another"));
        left.push_back(read_file(other).substr(size));
      }
      before.remove();
    }
  }
  const std::string own = read_file(file);
  for (const std::string& record : left) {
    write_text(file, own + record);
    const auto spool = reopened();
    EXPECT_EQ(spool->program(), "folder");
    EXPECT_EQ(spool->token(), "token");
    EXPECT_EQ(spool->last(), 1U);
    EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
    EXPECT_EQ(read_file(file), own);
  }
}

TEST_F(SpoolTest, AFileThatSomebodyHasDeletedServesNobody) {
  for (std::uint32_t run = 1; run <= 3; ++run) {
    RunSpool spool{*files, run, "token"};
    spool.append(log("a"));
    EXPECT_THAT(logs_after(spool, 0), ElementsAre("a"));
    spool.remove();
    std::filesystem::remove_all(place);
  }
}

TEST_F(SpoolTest, ASegmentThatFindsNoRoomLeavesTheOneBeforeWhichIsAllThatIsKept) {
  const auto spool = begun();
  spool->append(log(std::string(600'000, 'x')));
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit none = unlimited;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &none);
  {
    std::jthread acknowledging{[&](const std::stop_token& stop) {
      while (!stop.stop_requested()) spool->acknowledge(1);
    }};
    for (int i = 0; i < 5000; ++i) EXPECT_THROW(spool->append(log("b")), Error);
  }
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_GT(spool->bytes(), 600'000U);
  EXPECT_EQ(used_files(), 1U);
  spool->append(log("b"));
  EXPECT_THAT(logs_after(*spool, 1), ElementsAre("b"));
}

TEST_F(SpoolTest, ADamagedSegmentTakesWhatFollowsItWithIt) {
  auto spool = begun();
  for (int i = 0; i < 6; ++i) spool->append(log(std::to_string(i) + std::string(300'000, 'x')));
  EXPECT_EQ(used_files(), 3U);
  spool.reset();
  std::filesystem::resize_file(place / "2.spool", 400'000);
  spool = reopened();
  EXPECT_EQ(spool->last(), 3U) << "numbers must stay without gaps";
  EXPECT_EQ(used_files(), 2U);
  spool->append(log("next"));
  EXPECT_EQ(logs_after(*spool, 3), std::vector<std::string>{"next"});
}

TEST_F(SpoolTest, RunsOfOneNumberAreNotMixed) {
  begun()->append(log("a"));
  {
    RunSpool other{*files, 12, "of another results file"};
    other.append(log("b"));
    other.append(log("c"));
  }
  const auto spool = reopened();
  EXPECT_EQ(spool->token(), "token");
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
  EXPECT_EQ(used_files(), 1U);
}

/// What an earlier version wrote of run 12, from these numbers on.
class EarlierSpoolTest : public SpoolTest {
 protected:
  void write_earlier(const std::string& name, std::uint64_t first,
                     const std::vector<std::string>& logs) const {
    std::string bytes;
    const auto put = [&](std::uint32_t value) {
      for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
    };
    for (const std::string& text : logs) {
      RunBatch batch = log(text);
      batch.set_run(12);
      batch.set_token("token");
      batch.set_seq(first++);
      const std::string record = batch.SerializeAsString();
      put(static_cast<std::uint32_t>(record.size()));
      put(crc32(record));
      bytes += record;
    }
    write_text(place / "12" / name, bytes);
  }
  const std::vector<std::string> all{"three", "four", "five", "six"};
};

TEST_F(EarlierSpoolTest, SegmentsAreReadAndGoneOnWith) {
  write_earlier("segment-00000000000000000003", 3, {"three", "four"});
  write_earlier("segment-00000000000000000005", 5, {"five", "six"});
  write_text(place / "12" / "program", "folder");
  auto spool = reopened();
  EXPECT_EQ(spool->last(), 6U);
  EXPECT_EQ(spool->token(), "token");
  EXPECT_EQ(spool->program(), "folder");
  EXPECT_EQ(logs_after(*spool, 2), all);
  spool->append(end());
  EXPECT_EQ(spool->after(6)->seq(), 7U);
  spool = reopened();
  EXPECT_TRUE(spool->ended());
  EXPECT_EQ(spool->program(), "folder");
  EXPECT_EQ(logs_after(*spool, 2).size(), 5U);
  spool->acknowledge(6);
  EXPECT_FALSE(std::filesystem::exists(place / "12/segment-00000000000000000003"));
  spool->remove();
  EXPECT_EQ(used_files(), 0U);
}

TEST_F(EarlierSpoolTest, TheOneFileIsReadAndGoneOnWith) {
  write_earlier("batches", 3, all);  // it begins with the third, as a compacted one did
  auto spool = reopened();
  EXPECT_EQ(spool->last(), 6U);
  EXPECT_EQ(logs_after(*spool, 2), all);
  spool->append(end());
  EXPECT_EQ(spool->after(6)->seq(), 7U);
  spool->acknowledge(6);
  EXPECT_FALSE(std::filesystem::exists(place / "12/batches"));
  spool = reopened();
  EXPECT_TRUE(spool->ended());
}

TEST_F(EarlierSpoolTest, AnEmptyFileIsNoBatch) {
  write_text(place / "12" / "batches", "");
  const auto spool = reopened();
  EXPECT_EQ(spool->last(), 0U);
  spool->append(log("a"));
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
}

TEST_F(EarlierSpoolTest, ARunThatHadNotBegunIsFoundByItsFolder) {
  std::filesystem::create_directories(place / "12");
  const auto spool = reopened();
  EXPECT_EQ(spool->last(), 0U);
  spool->append(end());
  spool->remove();
  EXPECT_EQ(used_files(), 0U);
}

TEST_F(SpoolTest, AnAcknowledgementBeyondTheLastBatchCountsAsTheLast) {
  const auto spool = begun();
  spool->append(log("a"));
  spool->acknowledge(100);
  EXPECT_EQ(spool->acknowledged(), 1U);
  spool->acknowledge(0);
  EXPECT_EQ(spool->acknowledged(), 1U);
}

TEST_F(SpoolTest, AFullDiskIsReportedAndWhatWasThereStaysWhole) {
  auto spool = begun();
  spool->append(log("a"));
  const auto before = std::filesystem::file_size(file);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit small = unlimited;
  small.rlim_cur = before + 100;
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(spool->append(log(std::string(1000, 'x'))), Error);
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_EQ(std::filesystem::file_size(file), before);
  spool->append_in_memory(end());
  EXPECT_TRUE(spool->ended());
  EXPECT_EQ(spool->after(1)->seq(), 2U);
  spool = reopened();
  EXPECT_EQ(spool->last(), 1U);
}

TEST_F(SpoolTest, ASegmentThatFoundNoRoomBeginsAnew) {
  auto spool = begun();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  getrlimit(RLIMIT_FSIZE, &unlimited);
  rlimit none = unlimited;
  none.rlim_cur = 0;
  setrlimit(RLIMIT_FSIZE, &none);
  EXPECT_THROW(spool->keep_program("folder"), Error);
  EXPECT_THROW(spool->append(log("a")), Error);
  setrlimit(RLIMIT_FSIZE, &unlimited);
  EXPECT_EQ(used_files(), 0U);
  spool->append(log("a"));
  EXPECT_THAT(logs_after(*spool, 0), ElementsAre("a"));
  spool = reopened();
  EXPECT_EQ(spool->program(), "folder");
}

TEST_F(SpoolTest, OnlyFilesAndFoldersNamedByANumberAreRuns) {
  for (const char* name : {"7", "x", "12x"}) std::filesystem::create_directories(place / name);
  write_text(place / "9", "a file");
  write_text(place / "x.spool", "a file");
  begun()->append(log("a"));
  std::vector<std::uint32_t> runs;
  for (const auto& spool : all_reopened()) runs.push_back(spool->run());
  EXPECT_THAT(runs, ElementsAre(7U, 12U));
}

}  // namespace
}  // namespace abl::agent
