// SPDX-License-Identifier: Apache-2.0
#include "storage/database.h"
#include "storage/schema.h"

#include <fmt/format.h>

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "storage/sqlite_error.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Mode = Database::Mode;

class DatabaseTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  const std::filesystem::path file = folder / "results.db";

  static std::string ask(Database& db, const char* sql) {
    return db.prepared(sql).one([](const Statement& row) { return row.text(0); }).value_or("nothing");
  }
  /// Runs SQL on the file as another program would.
  void alter(const std::string& sql) const {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(raw);
    sqlite3_close(raw);
  }
  void expect_refusal(Mode mode, Code code, const std::string& words) const {
    const auto [found, message] = error_of([&] { Database{file, mode}; });
    EXPECT_EQ(found, code) << message;
    EXPECT_THAT(message, AllOf(HasSubstr(file.string()), HasSubstr(words)));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
};

TEST_F(DatabaseTest, NewFileIsMarkedAsOursAndWrittenSafely) {
  Database db{file, Mode::kWrite};
  EXPECT_EQ(ask(db, "PRAGMA journal_mode"), "wal");
  EXPECT_EQ(ask(db, "PRAGMA synchronous"), "2") << "FULL: a commit is on disk when it returns";
  EXPECT_EQ(ask(db, "PRAGMA foreign_keys"), "1");
  EXPECT_EQ(ask(db, "PRAGMA busy_timeout"), "10000");
  EXPECT_EQ(ask(db, "PRAGMA application_id"), std::to_string(0x61626c31));
  EXPECT_EQ(ask(db, "PRAGMA user_version"), std::to_string(migrations().back().to));
}

TEST_F(DatabaseTest, LogThatGrewLongIsCutBackToTheLimitOnceItIsInTheFile) {
  Database db{file, Mode::kWrite};
  const auto limit = std::stoull(ask(db, "PRAGMA journal_size_limit"));
  EXPECT_EQ(limit, 16u << 20);
  const auto log_bytes = [&] { return std::filesystem::file_size(file.string() + "-wal"); };
  db.execute("INSERT INTO metric (name) VALUES (printf('%.*c', 20000000, 'x'))");
  ASSERT_GT(log_bytes(), limit) << "one commit may take more; it is followed by a checkpoint";
  db.execute("INSERT INTO metric (name) VALUES ('a')");  // with it the log begins anew
  EXPECT_EQ(log_bytes(), limit);
}

TEST_F(DatabaseTest, EveryTableIsStrict) {
  Database db{file, Mode::kWrite};
  EXPECT_EQ(ask(db,
                "SELECT group_concat(name) FROM pragma_table_list WHERE type = 'table' AND schema = 'main' "
                "AND strict = 0 AND "
                "name NOT LIKE 'sqlite_%'"),
            "");
  EXPECT_THROW(db.execute("INSERT INTO metric (id, name) VALUES ('not a number', 'x')"), Error);
}

TEST_F(DatabaseTest, ForeignKeysAreEnforced) {
  Database db{file, Mode::kWrite};
  EXPECT_THROW(db.execute("INSERT INTO sweep_seed (sweep_id, position, seed) VALUES (7, 0, 0)"), Error);
}

TEST_F(DatabaseTest, ReadOnlyConnectionReadsAndRefusesToWrite) {
  Database writer{file, Mode::kWrite};
  Database reader{file, Mode::kReadOnly};
  const auto before = reader.data_version();
  writer.execute("INSERT INTO metric (name) VALUES ('val/top1')");
  EXPECT_EQ(ask(reader, "SELECT name FROM metric"), "val/top1");
  EXPECT_NE(reader.data_version(), before) << "another connection has committed";
  EXPECT_EQ(error_of([&] { reader.execute("DELETE FROM metric"); }).first, Code::kPermissionDenied);
}

TEST_F(DatabaseTest, FileInAFolderThatMayNotBeWrittenCanStillBeRead) {
  { Database{file, Mode::kWrite}.execute("INSERT INTO metric (name) VALUES ('lr')"); }
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms{0644});  // its owner shares it
  std::filesystem::permissions(folder.path(), perms{0555});
  const bool root = ::geteuid() == 0;  // who may write everywhere: become nobody for a moment
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  std::string read;
  const auto [code, message] = error_of([&] {
    Database reader{file, Mode::kReadOnly};
    read = ask(reader, "SELECT name FROM metric");
  });
  const auto refused = error_of([&] { Database{file, Mode::kWrite}; });
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  std::filesystem::permissions(folder.path(), perms::owner_all);
  EXPECT_EQ(read, "lr") << message;
  EXPECT_EQ(refused.first, Code::kPermissionDenied) << refused.second;
  EXPECT_THAT(refused.second, HasSubstr(file.string()));
}

TEST_F(DatabaseTest, WhatIsNewIsItsOwnersAlone) {
  const mode_t before = ::umask(022);
  {
    Database db{file, Database::Mode::kWrite};
    db.execute("INSERT INTO metric (name) VALUES ('a')");
    for (const char* end : {"", "-wal", "-shm"}) {
      const auto mode = std::filesystem::status(file.string() + end).permissions();
      EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write) << end;
    }
  }
  ::umask(before);
}

TEST_F(DatabaseTest, StatementEndsWhenNobodyWaitsForItAnyMore) {
  Database{file, Database::Mode::kWrite};
  Database db{file, Database::Mode::kReadOnly};
  int looks = 0;
  auto turn = std::make_unique<Reading>(db, [&] { return ++looks > 3; });
  const auto [code, message] = error_of([&] {
    db.prepared("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
        .one([](const Statement& row) { return row.integer(0); });
  });
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_THAT(message, HasSubstr("request cancelled"));
  EXPECT_EQ(error_of([&] { db.data_version(); }).first, Code::kCancelled) << "nor is another begun";
  turn.reset();
  EXPECT_EQ(error_of([&] { db.data_version(); }).first, Code::kOk);
}

TEST_F(DatabaseTest, MissingFileIsCreatedByAWriterAndRefusedToAReader) {
  expect_refusal(Mode::kReadOnly, Code::kNotFound, "no such file");
  EXPECT_FALSE(std::filesystem::exists(file));
  Database{file, Mode::kWrite};
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(DatabaseTest, WhatTheSchemaDoesNotTakeIsToldFromTroubleOfTheStore) {
  Database db{file, Mode::kWrite};
  const auto code = [&](const char* sql) { return error_of([&] { db.execute(sql); }).first; };
  for (const char* sql :
       {"INSERT INTO metric (id, name) VALUES ('not a number', 'x')",
        "INSERT INTO metric (name) VALUES (NULL)", "INSERT INTO metric (name) VALUES (zeroblob(2000000000))"})
    EXPECT_EQ(code(sql), Code::kInvalidArgument) << sql;
  EXPECT_TRUE(is_of_what_is_stored(Code::kInvalidArgument));
  db.execute("PRAGMA query_only = ON");
  EXPECT_FALSE(is_of_what_is_stored(code("INSERT INTO metric (name) VALUES ('x')"))) << "not writable";
  EXPECT_FALSE(is_of_what_is_stored(code("INSERT INTO gone VALUES (1)"))) << "no such table";
}

TEST_F(DatabaseTest, FolderIsRefused) {
  std::filesystem::create_directory(file);
  expect_refusal(Mode::kWrite, Code::kInvalidArgument, "a folder");
  expect_refusal(Mode::kReadOnly, Code::kInvalidArgument, "a folder");
}

TEST_F(DatabaseTest, MissingFolderIsNamed) {
  const auto [code, message] = error_of([&] { Database{folder / "no/results.db", Mode::kWrite}; });
  EXPECT_EQ(code, Code::kNotFound);
  EXPECT_THAT(message, HasSubstr("create " + (folder / "no").string()));
}

TEST_F(DatabaseTest, FileThatIsNoDatabaseIsRefusedAndLeftAlone) {
  const std::string text(5000, 'x');
  std::ofstream{file} << text;
  expect_refusal(Mode::kWrite, Code::kDataLoss, "not a results file");
  expect_refusal(Mode::kReadOnly, Code::kDataLoss, "not a results file");
  EXPECT_EQ(read_file(file), text);
}

TEST_F(DatabaseTest, DatabaseOfAnotherProgramIsRefusedAndLeftAlone) {
  alter("CREATE TABLE theirs (a)");
  const std::string before = read_file(file);
  expect_refusal(Mode::kWrite, Code::kInvalidArgument, "another program");
  expect_refusal(Mode::kReadOnly, Code::kInvalidArgument, "another program");
  EXPECT_EQ(read_file(file), before);
}

TEST_F(DatabaseTest, StoreOfANewerVersionIsRefusedWithBothVersions) {
  Database{file, Mode::kWrite};
  alter(("PRAGMA user_version = " + std::to_string(migrations().back().to + 1)).c_str());
  for (const Mode mode : {Mode::kWrite, Mode::kReadOnly}) {
    expect_refusal(mode, Code::kFailedPrecondition, "newer version");
    expect_refusal(mode, Code::kFailedPrecondition, fmt::format("schema {}", migrations().back().to + 1));
  }
}

TEST_F(DatabaseTest, StoreOfAnOlderVersionIsRefusedToAReaderWhoMayNotUpdateIt) {
  Database{file, Mode::kWrite};
  alter("PRAGMA user_version = 0");
  expect_refusal(Mode::kReadOnly, Code::kFailedPrecondition, "older version");
}

TEST_F(DatabaseTest, EmptyFileBecomesAStoreButHoldsNothingToRead) {
  std::ofstream{file};
  expect_refusal(Mode::kReadOnly, Code::kInvalidArgument, "empty");
  Database db{file, Mode::kWrite};
  EXPECT_EQ(ask(db, "PRAGMA user_version"), std::to_string(migrations().back().to));
}

TEST_F(DatabaseTest, PlaceThatCannotBeWrittenIsRefused) {
  const auto [code, message] = error_of([] { Database{"/proc/results.db", Mode::kWrite}; });
  EXPECT_EQ(code, Code::kPermissionDenied);
  EXPECT_THAT(message, AllOf(HasSubstr("/proc/results.db"), HasSubstr("permissions")));
}

TEST_F(DatabaseTest, TransactionRollsBackUnlessCommittedAndSavepointsNest) {
  Database db{file, Mode::kWrite};
  {
    Transaction outer{db, Transaction::kImmediate};
    db.execute("INSERT INTO metric (name) VALUES ('kept')");
    {
      Transaction inner{db, Transaction::kSavepoint};
      db.execute("INSERT INTO metric (name) VALUES ('dropped')");
    }
    {
      const Transaction snapshot{db, Transaction::kRead};
      EXPECT_EQ(ask(db, "SELECT group_concat(name) FROM metric"), "kept");
    }
    outer.commit();
  }
  {
    Transaction left{db, Transaction::kImmediate};
    db.execute("INSERT INTO metric (name) VALUES ('forgotten')");
  }
  EXPECT_EQ(ask(db, "SELECT group_concat(name) FROM metric"), "kept");
}

TEST_F(DatabaseTest, StatementIsPreparedOnceAndComesBackClean) {
  Database db{file, Mode::kWrite};
  constexpr const char* kSql = "SELECT :a IS NULL";
  Statement& first = db.prepared(kSql);
  first.bind(":a", 1);
  ASSERT_TRUE(first.step());
  EXPECT_EQ(first.integer(0), 0);
  Statement& again = db.prepared(kSql);  // mid-way: reset and unbound
  EXPECT_EQ(&first, &again);
  EXPECT_EQ(again.one([](const Statement& row) { return row.integer(0); }), 1);
}

TEST_F(DatabaseTest, ValuesComeBackAsTheyWereBound) {
  Database db{file, Mode::kWrite};
  const std::string bytes{"a\0b", 3};
  auto& row = db.prepared("SELECT :integer, :real, :text, :blob, :null, :empty");
  row.bind(":integer", std::int64_t{1} << 60)
      .bind(":real", 0.1)
      .bind(":text", bytes)
      .bind_blob(":blob", bytes)
      .bind_null(":null");
  row.bind(":empty", std::string_view{});
  ASSERT_TRUE(row.step());
  EXPECT_EQ(row.integer(0), std::int64_t{1} << 60);
  EXPECT_EQ(row.real(1), 0.1);
  EXPECT_EQ(row.text(2), bytes);
  EXPECT_EQ(row.text(3), bytes);
  EXPECT_TRUE(row.is_null(4));
  EXPECT_FALSE(row.is_null(5)) << "an empty text is not NULL";
  EXPECT_EQ(row.optional_integer(4), std::nullopt);
}

}  // namespace
}  // namespace abl::storage
