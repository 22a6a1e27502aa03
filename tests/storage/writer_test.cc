// SPDX-License-Identifier: Apache-2.0
#include "storage/writer.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>
#include <stop_token>
#include <thread>

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::int64_t count(Database& db) {
  return db.prepared("SELECT COUNT(*) FROM metric")
      .one([](const Statement& row) { return row.integer(0); })
      .value();
}
Writer::Job insert(const std::string& name) {
  return [name](Database& db) {
    db.prepared("INSERT INTO metric (name) VALUES (:name)").bind(":name", name).run();
  };
}

class WriterTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  const std::filesystem::path file = folder / "results.db";
};

/// Holds the writer in a job, so that what is posted meanwhile becomes one group.
class Gate {
 public:
  explicit Gate(Writer& writer) {
    writer.post([this](Database&) {
      entered_.count_down();
      open_.wait();
    });
    entered_.wait();
  }
  void open() { open_.count_down(); }

 private:
  std::latch entered_{1}, open_{1};
};

TEST_F(WriterTest, CallReturnsWhatTheJobReturnsOnceItIsOnDisk) {
  Writer writer{file};
  Database reader{file, Database::Mode::kReadOnly};
  writer.call(insert("a"));
  EXPECT_EQ(count(reader), 1) << "visible to others when call returns";
  EXPECT_EQ(writer.call([](Database& db) { return count(db); }), 1);
}

TEST_F(WriterTest, CallThrowsWhatTheJobThrows) {
  Writer writer{file};
  EXPECT_THROW(writer.call([](Database&) { throw std::out_of_range{"no"}; }), std::out_of_range);
  EXPECT_EQ(error_of([&] {
              writer.call([](Database&) -> int { throw Error{Code::kNotFound, "gone"}; });
            }).first,
            Code::kNotFound);
}

TEST_F(WriterTest, WhatIsPostedDuringACommitBecomesOneTransactionAndIsToldAfterIt) {
  Writer writer{file};
  Database reader{file, Database::Mode::kReadOnly};
  std::vector<std::int64_t> seen;  // by a reader, when each job is told to be done
  std::latch done{3};
  Gate gate{writer};
  for (const char* name : {"a", "b", "c"})
    writer.post(insert(name), [&](std::exception_ptr error) {
      EXPECT_FALSE(error);
      seen.push_back(count(reader));
      done.count_down();
    });
  gate.open();
  done.wait();
  EXPECT_THAT(seen, ElementsAre(3, 3, 3)) << "all three were on disk before the first was told";
}

TEST_F(WriterTest, WhatItDoesIsCountedAndWhatWaitsIsKnown) {
  Writer writer{file};
  const auto before = writer.figures().commits.value();
  {
    Gate gate{writer};
    for (const char* name : {"a", "b", "c"}) writer.post(insert(name));
    const Writer::Backlog backlog = writer.backlog();
    EXPECT_EQ(backlog.jobs, 4U) << "the one that is under way among them";
    EXPECT_GT(backlog.oldest.count(), 0);
    EXPECT_GT(writer.backlog().oldest, backlog.oldest);
    gate.open();
    writer.call([](Database&) {});
  }
  EXPECT_GE(writer.figures().commits.value(), before + 2);
  EXPECT_EQ(writer.figures().failed.value(), 0U);
  EXPECT_GE(writer.figures().jobs.value(), 5U);
}

TEST_F(WriterTest, JobThatThrowsUndoesOnlyItself) {
  Writer writer{file};
  std::vector<bool> failed;
  std::latch done{3};
  const auto note = [&](std::exception_ptr error) {
    failed.push_back(error != nullptr);
    done.count_down();
  };
  Gate gate{writer};
  writer.post(insert("before"), note);
  writer.post(
      [](Database& db) {
        insert("half")(db);
        throw std::runtime_error{"changed its mind"};
      },
      note);
  writer.post(insert("after"), note);
  gate.open();
  done.wait();
  EXPECT_THAT(failed, ElementsAre(false, true, false));
  const auto names = writer.call([](Database& db) {
    return db.prepared("SELECT name FROM metric ORDER BY id").all([](const Statement& row) {
      return row.text(0);
    });
  });
  EXPECT_THAT(names, ElementsAre("before", "after"));
}

TEST_F(WriterTest, StatementThatAJobLeavesOpenHoldsNoOldState) {
  Writer writer{file, {.bytes = 1, .patience = Milliseconds{1}}};
  writer.call(insert("a"));
  EXPECT_EQ(error_of([&] {
              writer.call([](Database& db) {
                auto& names = db.prepared("SELECT name FROM metric");
                if (names.step()) throw Error{Code::kAborted, "changed its mind"};
              });
            }).first,
            Code::kAborted);
  writer.call(insert("b"));
  writer.call([](Database&) {});  // the log is shortened after the group before
  EXPECT_EQ(std::filesystem::file_size(file.string() + "-wal"), 0u);
}

TEST_F(WriterTest, CommitThatFailsIsToldToEveryJobOfTheGroup) {
  Writer writer{file};
  std::vector<std::string> told;
  std::latch done{2};
  const auto note = [&](std::exception_ptr error) {
    told.push_back(error_of([&] { std::rethrow_exception(error); }).second);
    done.count_down();
  };
  Gate gate{writer};
  writer.post(insert("fine by itself"), note);
  writer.post(  // a violation that COMMIT alone finds
      [](Database& db) {
        db.execute(
            "PRAGMA defer_foreign_keys = ON; INSERT INTO sweep_seed (sweep_id, position, seed) VALUES (9, 0, "
            "0)");
      },
      note);
  gate.open();
  done.wait();
  EXPECT_THAT(told, ElementsAre(HasSubstr("FOREIGN KEY"), HasSubstr("FOREIGN KEY")));
  EXPECT_EQ(writer.call([](Database& db) { return count(db); }), 0);
  writer.call(insert("afterwards"));
  EXPECT_EQ(writer.call([](Database& db) { return count(db); }), 1) << "the writer goes on";
}

TEST_F(WriterTest, DestructorFinishesWhatWasPosted) {
  {
    Writer writer{file};
    for (int i = 0; i < 100; ++i) writer.post(insert("m" + std::to_string(i)));
  }
  Database reader{file, Database::Mode::kReadOnly};
  EXPECT_EQ(count(reader), 100);
}

TEST_F(WriterTest, DestructorLeavesOneWholeFile) {
  {
    Writer writer{file};
    Database idle{file, Database::Mode::kReadOnly};  // an open connection, as dashboards have
    writer.call(insert("a"));
    idle.data_version();
  }
  const auto copy = folder / "copy.db";
  std::filesystem::copy_file(file, copy);  // alone, without its log
  Database reader{copy, Database::Mode::kReadOnly};
  EXPECT_EQ(count(reader), 1);
  std::error_code none;
  EXPECT_EQ(std::filesystem::exists(file.string() + "-wal")
                ? std::filesystem::file_size(file.string() + "-wal", none)
                : 0,
            0u);
}

/// Two readers, of which the next has begun before the one before ends, unless it may not begin.
class OverlappingReaders {
 public:
  explicit OverlappingReaders(const std::filesystem::path& file)
      : threads_{std::jthread{[this, file](std::stop_token stop) { read(file, stop, 0); }},
                 std::jthread{[this, file](std::stop_token stop) { read(file, stop, 1); }}} {}

 private:
  void read(const std::filesystem::path& file, const std::stop_token& stop, int me) {
    Database db{file, Database::Mode::kReadOnly};
    while (!stop.stop_requested()) {
      waits_[me] = true;
      const Reading turn{db};
      waits_[me] = false;
      const Transaction snapshot{db, Transaction::kRead};
      count(db);
      const int seen = begun_[1 - me];
      ++begun_[me];
      for (int i = 0; begun_[1 - me] == seen && !stop.stop_requested() && !(i > 1000 && waits_[1 - me]); ++i)
        std::this_thread::yield();
    }
    waits_[me] = true;
  }
  std::atomic<int> begun_[2] = {};
  std::atomic<bool> waits_[2] = {};
  std::jthread threads_[2];
};

TEST_F(WriterTest, LogStaysShortThoughReadersAlwaysOverlap) {
  constexpr std::int64_t kLimit = 256 << 10;
  Writer writer{file, {.bytes = kLimit}};
  OverlappingReaders readers{file};
  std::uintmax_t longest = 0;
  for (int i = 0; i < 400; ++i) {  // of 5 pages at least: 8 MiB, 32 times the limit
    writer.call(insert(std::to_string(i) + std::string(20'000, 'x')));
    longest = std::max(longest, std::filesystem::file_size(file.string() + "-wal"));
  }
  EXPECT_LT(longest, static_cast<std::uintmax_t>(4 * kLimit));
}

TEST_F(WriterTest, ReaderThatStaysForEverStopsNoWriter) {
  Writer writer{file, {.bytes = 64 << 10, .patience = Milliseconds{1}}};
  Database reader{file, Database::Mode::kReadOnly};
  const Transaction snapshot{reader, Transaction::kRead};
  EXPECT_EQ(count(reader), 0);
  for (int i = 0; i < 50; ++i) writer.call(insert(std::to_string(i) + std::string(20'000, 'x')));
  EXPECT_EQ(count(reader), 0) << "it still sees what it saw";
}

TEST_F(WriterTest, NothingIsWrittenIntoAFileThatWasDeletedOrReplaced) {
  Writer writer{file};
  writer.call(insert("a"));
  const auto refused = [&](const std::string& how) {
    const auto [code, message] = error_of([&] { writer.call(insert("b")); });
    EXPECT_EQ(code, Code::kDataLoss);
    EXPECT_THAT(message, testing::AllOf(HasSubstr(how), HasSubstr("nothing is being stored"),
                                        HasSubstr("start it again")));
  };
  std::filesystem::rename(file, folder / "elsewhere.db");
  refused("results.db was deleted");
  std::filesystem::copy_file(folder / "elsewhere.db", file);
  refused("results.db was replaced by another file");
  std::filesystem::rename(folder / "elsewhere.db", file);
  writer.call(insert("b"));
  std::filesystem::rename(file.string() + "-wal", folder / "log");
  refused("results.db-wal was deleted");
}

TEST_F(WriterTest, WhatADeletedFileHeldIsRescued) {
  const auto rescued = [&] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{file.parent_path()})
      if (entry.path().filename().string().starts_with("results.db.rescued-")) files.push_back(entry.path());
    return files;
  };
  {
    Writer writer{file};
    writer.call(insert("a"));
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + end);
    const std::string message = error_of([&] { writer.call(insert("b")); }).second;
    ASSERT_EQ(rescued().size(), 1u);
    EXPECT_THAT(message, HasSubstr("its contents were saved to " + rescued()[0].string()));
    (void)error_of([&] { writer.call(insert("b")); });
  }
  ASSERT_EQ(rescued().size(), 1u) << "once";
  EXPECT_EQ(std::filesystem::status(rescued()[0]).permissions() & std::filesystem::perms::all,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Database copy{rescued()[0], Database::Mode::kReadOnly};
  EXPECT_EQ(count(copy), 1);
}

TEST_F(WriterTest, LogOfTheFileThatTookItsPlaceIsLeftAlone) {
  const auto other = folder / "other.db";
  auto next = std::make_unique<Writer>(other);
  next->call(insert("of the other"));
  {
    Writer writer{file};
    writer.call(insert("a"));
    for (const char* end : {"", "-wal", "-shm"})
      std::filesystem::rename(other.string() + end, file.string() + end);
  }
  EXPECT_GT(std::filesystem::file_size(file.string() + "-wal"), 0u);
}

TEST_F(WriterTest, FileThatCannotBeOpenedIsRefusedAtOnce) {
  EXPECT_EQ(error_of([&] { Writer{folder / "no/results.db"}; }).first, Code::kNotFound);
}

TEST_F(WriterTest, ReadersNeitherBlockNorFailTheWriterAndSeeWholeGroups) {
  constexpr int kJobs = 100, kReaders = 4;
  Writer writer{file};
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i)
    readers.emplace_back([&] {
      Database db{file, Database::Mode::kReadOnly};
      std::int64_t last = 0;
      while (!stop) {
        const Transaction snapshot{db, Transaction::kRead};
        const auto n = count(db);
        EXPECT_EQ(n % 2, 0) << "half a job was seen";
        EXPECT_GE(n, last);
        EXPECT_EQ(count(db), n) << "a snapshot stands still";
        last = n;
        ++reads;
      }
    });
  std::vector<std::thread> posters;
  for (int poster = 0; poster < 2; ++poster)
    posters.emplace_back([&, poster] {
      for (int i = 0; i < kJobs / 2; ++i) {
        const std::string name = std::to_string(poster) + "-" + std::to_string(i);
        writer.call([&](Database& db) {
          insert(name + "a")(db);
          insert(name + "b")(db);
        });
      }
    });
  for (auto& thread : posters) thread.join();
  stop = true;
  for (auto& thread : readers) thread.join();
  EXPECT_EQ(writer.call([](Database& db) { return count(db); }), 2 * kJobs);
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace abl::storage
