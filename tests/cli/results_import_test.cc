// SPDX-License-Identifier: Apache-2.0
#include "cli/results_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "storage/database.h"
#include "storage/sweep_store.h"
#include "tests/temporary_folder.h"

namespace abl::cli {
namespace {

using testing::HasSubstr;

class ResultsImportTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  storage::Database db{folder / "results.db", storage::Database::Mode::kWrite};
  std::filesystem::path file(const std::string& name, const std::string& text) const {
    write_file(folder / name, text);
    return folder / name;
  }
  std::int64_t runs() {
    return *db.prepared("SELECT COUNT(*) FROM run").one([](const storage::Statement& line) {
      return line.integer(0);
    });
  }
};

TEST_F(ResultsImportTest, AFileWithSeveralSweepsIsImportedAsAWholeOrNotAtAll) {
  import_results(db, file("b.csv", "sweep,row,seed,metric,step,value\nb,x,0,acc,1,0.5\n"), {});
  const auto b = storage::SweepStore{db}.get_brief("b");
  storage::SweepStore{db}.set_state(b.id, storage::SweepState::kPaused, SystemClock{}.now());
  const auto both = file(
      "both.csv", "sweep,row,seed,metric,step,value\na,x,0,acc,1,0.5\nb,x,1,acc,1,0.6\nb,x,0,acc,1,0.5\n");
  try {
    import_results(db, both, {});
    ADD_FAILURE() << "a paused sweep takes no results";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot import into sweep b: it is paused"));
  }
  EXPECT_FALSE(storage::SweepStore{db}.find("a"));
  EXPECT_EQ(runs(), 1);

  storage::SweepStore{db}.set_state(b.id, storage::SweepState::kActive, SystemClock{}.now());
  const auto imported = import_results(db, both, {});
  ASSERT_EQ(imported.size(), 2u);
  EXPECT_EQ(imported[0].sweep, "a");
  EXPECT_EQ(imported[0].runs, 1u);
  EXPECT_EQ(imported[1].runs, 1u);
  EXPECT_EQ(imported[1].unchanged, 1u);
  EXPECT_EQ(runs(), 3);
}

TEST_F(ResultsImportTest, WhatWouldBeImportedNeedsNoResultsFileAndChangesNone) {
  const auto csv = file("a.csv", "row,seed,acc\nx,0,0.5\nx,1,0.6\n");
  const auto nowhere = would_import(nullptr, csv, {});
  ASSERT_EQ(nowhere.size(), 1u);
  EXPECT_TRUE(nowhere[0].is_new_sweep);
  EXPECT_EQ(nowhere[0].runs, 2u);
  import_results(db, csv, {});
  const auto again = would_import(&db, csv, {});
  EXPECT_EQ(again[0].runs, 0u);
  EXPECT_EQ(again[0].unchanged, 2u);
  EXPECT_EQ(runs(), 2);
}

TEST_F(ResultsImportTest, TrialsAreOfTheFileAsItIsCalledAndNotOfACopy) {
  import_results(db, file("copy.csv", "row,acc\nx,0.5\n"), {.origin = "points.parquet"});
  EXPECT_EQ(*db.prepared("SELECT reason FROM trial").one([](const storage::Statement& line) {
    return line.text(0);
  }),
            "imported from points.parquet");
}

TEST_F(ResultsImportTest, ManySeedsOfOneRowFindTheirPlaces) {
  std::string first = "row,seed,acc\n", second = first;
  for (int seed = 0; seed < 40; ++seed) first += "x," + std::to_string(seed) + ",1\n";
  for (int seed = 20; seed < 60; ++seed) second += "y," + std::to_string(seed) + ",1\n";
  import_results(db, file("a.csv", first), {.sweep = "s"});
  import_results(db, file("b.csv", second), {.sweep = "s"});
  EXPECT_EQ(*db.prepared("SELECT COUNT(DISTINCT seed_index) FROM sweep_trial WHERE row = 1")
                 .one([](const storage::Statement& line) { return line.integer(0); }),
            40);
}

}  // namespace
}  // namespace abl::cli
