// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <fstream>
#include <latch>
#include <set>

#include "storage/schema.h"
#include "storage/writer.h"
#include "tests/small_disk.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::filesystem::path store_on(const SmallDisk& disk) { return disk.path() / "results.db"; }

std::string long_name(int i) { return std::to_string(i) + std::string(20'000, 'x'); }

void insert(Database& db, int i) {
  db.prepared("INSERT INTO metric (name) VALUES (:name)").bind(":name", long_name(i)).run();
}

std::set<std::string> names(Database& db) {
  const auto list =
      db.prepared("SELECT name FROM metric").all([](const Statement& row) { return row.text(0); });
  return {list.begin(), list.end()};
}

/// Inserts until the disk is full. Returns what was acknowledged.
std::set<std::string> fill(Writer& writer, std::string* message = nullptr) {
  std::set<std::string> acknowledged;
  for (int i = 0; i < 1000; ++i) {
    const auto [code, text] = error_of([&] { writer.call([i](Database& db) { insert(db, i); }); });
    if (code == Code::kOk) {
      acknowledged.insert(long_name(i));
      continue;
    }
    EXPECT_EQ(code, Code::kResourceExhausted) << text;
    if (message) *message = text;
    return acknowledged;
  }
  ADD_FAILURE() << "the disk never filled";
  return acknowledged;
}

TEST(DiskFullTest, NothingAcknowledgedIsLostAndTheWriterGoesOnWhenThereIsSpaceAgain) {
  SmallDisk disk;
  std::set<std::string> acknowledged;
  {
    Writer writer{store_on(disk)};
    std::string message;
    acknowledged = fill(writer, &message);
    EXPECT_GT(acknowledged.size(), 10u);
    EXPECT_THAT(message, AllOf(HasSubstr(store_on(disk).string()), HasSubstr("acknowledged is stored")));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    {
      Database reader{store_on(disk), Database::Mode::kReadOnly};
      EXPECT_EQ(names(reader), acknowledged) << "what was told to have failed is not there either";
    }
    disk.free_space();
    for (int i = 2000; i < 2010; ++i) {
      writer.call([i](Database& db) { insert(db, i); });
      acknowledged.insert(long_name(i));
    }
  }
  Database again{store_on(disk), Database::Mode::kWrite};
  EXPECT_EQ(names(again), acknowledged);
  EXPECT_EQ(again.prepared("PRAGMA integrity_check").one([](const Statement& row) { return row.text(0); }),
            "ok");
}

TEST(DiskFullTest, EveryJobOfAGroupThatDoesNotFitIsToldSo) {
  SmallDisk disk;
  Writer writer{store_on(disk)};
  const auto acknowledged = fill(writer);
  std::latch entered{1}, open{1}, done{3};
  writer.post([&](Database&) {
    entered.count_down();
    open.wait();
  });
  entered.wait();
  std::vector<Code> told;
  for (int i = 0; i < 3; ++i)
    writer.post(
        [i](Database& db) {
          for (int k = 0; k < 50; ++k) insert(db, 5000 + 100 * i + k);
        },
        [&](std::exception_ptr error) {
          told.push_back(error_of([&] {
                           if (error) std::rethrow_exception(error);
                         }).first);
          done.count_down();
        });
  open.count_down();
  done.wait();
  EXPECT_THAT(told, testing::Each(Code::kResourceExhausted));
  EXPECT_EQ(writer.call([](Database& db) { return names(db); }), acknowledged);
}

TEST(DiskFullTest, MigrationWithoutRoomForTheCopyChangesNothing) {
  SmallDisk disk;
  if (!disk.is_whole()) GTEST_SKIP() << "needs a tmpfs: this user may not mount one";
  {
    Writer writer{store_on(disk)};
    for (int i = 0; i < 25; ++i) writer.call([i](Database& db) { insert(db, i); });  // half a megabyte
  }
  std::ofstream ballast{store_on(disk).string() + ".ballast"};
  ballast << std::string(1'300'000, 'x');
  ballast.close();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(store_on(disk).c_str(), &db), SQLITE_OK);
  const int now = migrations().back().to;
  std::vector<Migration> steps{migrations().begin(), migrations().end()};
  steps.push_back({now + 1, "INSERT INTO metric (name) VALUES ('new')"});
  const auto [code, message] = error_of([&] { migrate(db, store_on(disk), steps); });
  EXPECT_EQ(code, Code::kResourceExhausted) << message;
  EXPECT_THAT(message, HasSubstr("cannot copy " + store_on(disk).string()));
  EXPECT_EQ(file_kind(db).version, now);
  sqlite3_close(db);
  EXPECT_FALSE(
      std::filesystem::exists(store_on(disk).string() + ".v" + std::to_string(now) + ".bak.partial"));
}

}  // namespace
}  // namespace abl::storage
