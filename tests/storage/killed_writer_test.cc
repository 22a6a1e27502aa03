// SPDX-License-Identifier: Apache-2.0
// What a writer that is killed leaves: each test kills a process of its own at a fail point.
#include <signal.h>
#include <sqlite3.h>

#include "base/fail_point.h"
#include "storage/schema.h"
#include "storage/writer.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

class KilledWriterDeathTest : public testing::Test {
 protected:
  KilledWriterDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  ~KilledWriterDeathTest() override { set_fail_points(""); }

  static void insert(const std::filesystem::path& file, const char* fail_points) {
    Writer writer{file};
    writer.call([](Database& db) { db.execute("INSERT INTO metric (name) VALUES ('before')"); });
    set_fail_points(fail_points);
    writer.call([](Database& db) { db.execute("INSERT INTO metric (name) VALUES ('killed')"); });
  }
  static std::string names(const std::filesystem::path& file) {
    Database db{file, Database::Mode::kWrite};
    return db.prepared("SELECT group_concat(name) FROM (SELECT name FROM metric ORDER BY id)")
        .one([](const Statement& row) { return row.text(0); })
        .value_or("");
  }
  /// The same in the process that is killed as in the one that looks: a death test is begun twice.
  static std::filesystem::path fresh(const char* name) {
    if (const auto* inside = std::getenv("KILLED_WRITER_FOLDER")) return std::filesystem::path{inside} / name;
    static const TemporaryFolder folder;
    ::setenv("KILLED_WRITER_FOLDER", folder.path().c_str(), 1);
    return folder / name;
  }
};

TEST_F(KilledWriterDeathTest, OfATransactionThatWasNotCommittedNothingIsThere) {
  const auto file = fresh("before.db");
  EXPECT_EXIT(insert(file, "scheduler.before-commit=kill"), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(names(file), "before");
}

TEST_F(KilledWriterDeathTest, WhatWasCommittedIsThereAlthoughNobodyHeard) {
  const auto file = fresh("after.db");
  EXPECT_EXIT(insert(file, "scheduler.after-commit=kill"), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(names(file), "before,killed");
}

TEST_F(KilledWriterDeathTest, ACommitThatFailsIsToldAndUndoneAndTheNextSucceeds) {
  const TemporaryFolder folder;
  const auto file = folder / "results.db";
  EXPECT_THROW(insert(file, "scheduler.before-commit=enospc@1"), Error);
  set_fail_points("");
  EXPECT_EQ(names(file), "before");
}

TEST_F(KilledWriterDeathTest, AMigrationThatIsKilledLeavesTheOldFileAndTheNextStartMigratesIt) {
  const auto file = fresh("old.db");
  const auto version_of = [&] {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    const int version = file_kind(db).version;
    sqlite3_close(db);
    return version;
  };
  const int newest = migrations().back().to;
  if (!std::filesystem::exists(file)) {
    sqlite3* db = nullptr;
    sqlite3_open(file.c_str(), &db);
    migrate(db, file, migrations().first(migrations().size() - 1));
    sqlite3_exec(db, "INSERT INTO metric (name) VALUES ('old')", nullptr, nullptr, nullptr);
    sqlite3_close(db);
  }
  const auto open_and_die = [&] {
    set_fail_points("scheduler.migration=kill");
    const Database db{file, Database::Mode::kWrite};
  };
  EXPECT_EXIT(open_and_die(), testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(version_of(), newest - 1);
  EXPECT_EQ(names(file), "old");
  EXPECT_EQ(version_of(), newest);
}

}  // namespace
}  // namespace abl::storage
