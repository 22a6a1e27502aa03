// SPDX-License-Identifier: Apache-2.0
#include "storage/backup.h"

#include <sqlite3.h>

#include <fstream>

#include "storage/removal.h"
#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class BackupTest : public StoreTest {
 protected:
  const std::filesystem::path file = folder / "results.db", copy = folder / "copy.db";
};

TEST_F(BackupTest, ACopyHoldsWhatWasCommittedBesideAnOpenWriter) {
  submit(sweep_of("msf", 2, 1));
  complete(1, std::nan(""));
  StoreFile{file}.copy_to(copy);
  Database db{copy, Database::Mode::kReadOnly};
  EXPECT_EQ(SweepStore{db}.get("msf").trials.completed, 1u);
  EXPECT_EQ(db.store_id(), this->db.store_id());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(copy).permissions(), perms::owner_read | perms::owner_write);
  EXPECT_FALSE(std::filesystem::exists(copy.string() + "-wal")) << "it is one file";
}

TEST_F(BackupTest, EqualStoresHaveEqualContentsAndOneValueMakesThemDiffer) {
  submit(sweep_of("msf", 2, 1));
  complete(1, 80);
  StoreFile{file}.copy_to(copy);
  const Contents before = StoreFile{copy}.contents();
  EXPECT_EQ(StoreFile{file}.contents(), before);
  EXPECT_EQ(before.count("point"), 1);
  db.execute("UPDATE point SET value = value + 1e-9");
  const Contents after = StoreFile{file}.contents();
  EXPECT_EQ(after.rows, before.rows);
  EXPECT_NE(after.digest, before.digest);
}

TEST_F(BackupTest, AStoreFileSeesOneStateWhateverIsWrittenMeanwhile) {
  submit(sweep_of("first", 1, 1));
  StoreFile store{file};
  submit(sweep_of("second", 1, 1, "o"));
  store.copy_to(copy);
  EXPECT_EQ(store.contents().count("sweep"), 1);
  EXPECT_EQ(StoreFile{copy}.contents().count("sweep"), 1);
}

TEST_F(BackupTest, WhatTheCopyLacksIsSaid) {
  submit(sweep_of("first", 1, 1));
  complete(1, 80);
  StoreFile{file}.copy_to(copy);
  submit(sweep_of("second", 2, 1, "o"));
  run(2);
  const Missing missing = StoreFile{file}.missing_in(copy);
  EXPECT_THAT(missing.sweeps, ElementsAre("second"));
  EXPECT_EQ(missing.trials, 2);
  EXPECT_EQ(missing.runs, 1);
  EXPECT_EQ(missing.under_way, 1);
  EXPECT_EQ(missing.first_run, 2);
}

TEST_F(BackupTest, ADamagedFileIsRefusedAndNothingTakesTheName) {
  for (int i = 0; i < 40; ++i) submit(sweep_of("s" + std::to_string(i), 3, 3, std::to_string(i)));
  StoreFile{file}.copy_to(copy);
  {
    std::fstream bytes{copy, std::ios::in | std::ios::out | std::ios::binary};
    bytes.seekp(4096 * 20);
    bytes << std::string(4096 * 10, 'x');
  }
  const auto [code, message] = error_of([&] { StoreFile{copy}.check(); });
  EXPECT_EQ(code, Code::kDataLoss);
  EXPECT_THAT(message, AllOf(HasSubstr("copy.db: "), HasSubstr("damaged")));
  EXPECT_EQ(error_of([&] { StoreFile{copy}.copy_to(folder / "third.db"); }).first, Code::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(folder / "third.db"));
  EXPECT_FALSE(std::filesystem::exists(folder / "third.db.partial"));
}

TEST_F(BackupTest, TheLogOfAStoreWhoseProgramWasKilledIsBroughtIntoIt) {
  submit(sweep_of("msf", 2, 1));
  const auto left = folder / "left.db";  // as a kill leaves it
  std::filesystem::copy_file(file, left);
  std::filesystem::copy_file(file.string() + "-wal", left.string() + "-wal");
  fold_log(left);
  EXPECT_FALSE(std::filesystem::exists(left.string() + "-wal"));
  EXPECT_EQ(StoreFile{left}.contents(), StoreFile{file}.contents());
}

TEST_F(BackupTest, AFileOfAnotherKindIsRefused) {
  EXPECT_EQ(error_of([&] { StoreFile{folder / "none.db"}; }).first, Code::kNotFound);
  EXPECT_EQ(error_of([&] { StoreFile{folder.path()}; }).first, Code::kInvalidArgument);
  sqlite3* other = nullptr;
  sqlite3_open((folder / "other.db").c_str(), &other);
  sqlite3_exec(other, "CREATE TABLE t (x)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  EXPECT_EQ(error_of([&] { StoreFile{folder / "other.db"}; }).first, Code::kInvalidArgument);
  db.execute("PRAGMA user_version = 1000");
  EXPECT_EQ(error_of([&] { StoreFile{file}; }).first, Code::kFailedPrecondition);
}

}  // namespace
}  // namespace abl::storage
