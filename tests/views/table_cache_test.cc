// SPDX-License-Identifier: Apache-2.0
#include "views/table_cache.h"

#include <atomic>
#include <thread>

#include "tests/storage/fixtures.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;
using storage::Database;
using storage::StoreTest;
using storage::sweep_of;
using testing::ElementsAre;

class TableCacheTest : public StoreTest {
 protected:
  std::string text_of(const PackedTable& table) { return table.part({}).rows(0).cells(0).text(); }
  Database reader{folder / "results.db", Database::Mode::kReadOnly};
};

std::vector<std::string> ids_of(const v1::Table& table) {
  std::vector<std::string> ids;
  for (const auto& row : table.rows()) ids.push_back(row.id());
  return ids;
}

TEST_F(TableCacheTest, ATableIsComputedOnceForEachStateOfTheStore) {
  submit(sweep_of("s", 2, 1));
  TableCache tables{folder / "results.db"};
  const auto first = tables.table(reader, "s");
  EXPECT_EQ(tables.table(reader, "s"), first);
  complete(1, 80);
  const auto second = tables.table(reader, "s");
  EXPECT_NE(second, first);
  EXPECT_EQ(text_of(*second), "80.00");
  submit(sweep_of("t", 1, 1, "other"));
  EXPECT_THAT(ids_of(tables.table(reader, "t")->part({})), ElementsAre("a"));
  EXPECT_EQ(tables.table(reader, "t"), tables.table(reader, "t")) << "two sweeps beside each other";
}

TEST_F(TableCacheTest, WhatIsKeptIsBounded) {
  submit(sweep_of("s", 2, 1));
  submit(sweep_of("t", 2, 1, "other"));
  const std::size_t size = TableCache{folder / "results.db"}.table(reader, "s")->bytes();
  TableCache none{folder / "results.db", size - 1};
  EXPECT_NE(none.table(reader, "s"), none.table(reader, "s"));
  TableCache one{folder / "results.db", size + size / 2};
  const std::weak_ptr<const PackedTable> first = one.table(reader, "s");
  EXPECT_FALSE(first.expired());
  const auto other = one.table(reader, "t");
  EXPECT_TRUE(first.expired()) << "the one that was read last stays";
  EXPECT_EQ(one.table(reader, "t"), other);
}

TEST_F(TableCacheTest, AnErrorIsNotKept) {
  TableCache tables{folder / "results.db"};
  EXPECT_EQ(storage::error_of([&] { tables.table(reader, "s"); }).first, Code::kNotFound);
  submit(sweep_of("s", 1, 1));
  EXPECT_EQ(tables.table(reader, "s")->rows(), 1u);
}

TEST_F(TableCacheTest, AnOlderStateIsNotTakenForTheNewest) {
  submit(sweep_of("s", 1, 1));
  TableCache tables{folder / "results.db"};
  const storage::Transaction snapshot{reader, storage::Transaction::kRead};
  EXPECT_EQ(storage::error_of([&] { tables.table(reader, "s"); }).first, Code::kInternal);
}

TEST_F(TableCacheTest, ReadersOfOneTableNeverSeeItOlderThanTheyAsked) {
  submit(sweep_of("s", 26, 1));
  TableCache tables{folder / "results.db"};
  std::atomic<std::uint32_t> committed = 0;
  std::atomic<bool> stale = false, done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      Database db{folder / "results.db", Database::Mode::kReadOnly};
      while (!done) {
        const std::uint32_t least = committed;
        std::uint32_t filled = 0;
        const v1::Table table = tables.table(db, "s")->part({});
        for (const auto& row : table.rows()) filled += row.cells(0).n();
        if (filled < least) stale = true;
      }
    });
  for (storage::TrialId trial = 1; trial <= 26; ++trial) {
    complete(trial, trial);
    committed = trial;
  }
  done = true;
  for (auto& thread : readers) thread.join();
  EXPECT_FALSE(stale);
}

TEST_F(TableCacheTest, WhereCommitsSayWhatTheyTouchATableIsReadAnewByItsRows) {
  submit(sweep_of("s", 20, 3));
  submit(sweep_of("t", 2, 1, "other"));
  storage::ChangeLog log;
  db.note_touched();
  const auto commit = [&] { log.add(db.take_touched()); };
  TableCache tables{folder / "results.db"};
  tables.follow(log);
  const auto first = tables.table(reader, "s");
  db.execute("UPDATE store SET id = id");  // as a heartbeat does
  EXPECT_EQ(tables.table(reader, "s"), first);
  complete(61, 80);
  commit();
  EXPECT_EQ(tables.table(reader, "s"), first) << "it is another sweep's";
  const auto steps_of = [&](auto work) {
    const std::int64_t before = reader.steps();
    work();
    return reader.steps() - before;
  };
  complete(1, 80);
  commit();
  std::shared_ptr<const PackedTable> second;
  const auto steps = steps_of([&] { second = tables.table(reader, "s"); });
  v1::Table anew;
  EXPECT_LT(steps * 3, steps_of([&] { anew = table(reader, "s"); }));
  EXPECT_EQ(second->part({}).SerializeAsString(), anew.SerializeAsString());
  storage::ChangeLog forgetful{log.number(), 1};
  TableCache others{folder / "results.db"};
  others.follow(forgetful);
  (void)others.table(reader, "s");
  for (const storage::TrialId trial : {2u, 3u}) complete(trial, 81);
  forgetful.add(db.take_touched());
  EXPECT_EQ(others.table(reader, "s")->part({}).SerializeAsString(), table(reader, "s").SerializeAsString())
      << "more than is remembered";
}

TEST_F(TableCacheTest, ATableThatWasReadBeforeTheLogHeardOfACommitIsReadAgainThen) {
  submit(sweep_of("s", 2, 1));
  storage::ChangeLog log;
  db.note_touched();
  TableCache tables{folder / "results.db"};
  tables.follow(log);
  (void)tables.table(reader, "s");
  complete(1, 80);
  (void)tables.table(reader, "s");  // between the commit and what is said of it
  log.add(db.take_touched());
  EXPECT_EQ(text_of(*tables.table(reader, "s")), "80.00");
}

TEST_F(TableCacheTest, APartHasItsRowsAndTheBaseline) {
  auto text = sweep_of("s", 5, 1);
  text.sweep.baseline = "c";
  submit(text);
  const PackedTable packed{table(db, "s")};
  v1::Table part = packed.part({.first = 1, .count = 1});
  EXPECT_THAT(ids_of(part), ElementsAre("b"));
  EXPECT_EQ(part.left_out(), 4u);
  EXPECT_EQ(part.next(), 2u);
  EXPECT_EQ(part.columns_size(), 3);
  EXPECT_EQ(part.baseline(), "c");
  part = packed.part({.first = 0, .count = 2, .with_baseline = true});
  EXPECT_THAT(ids_of(part), ElementsAre("a", "b", "c"));
  part = packed.part({.first = 3, .count = 9, .with_baseline = true});
  EXPECT_THAT(ids_of(part), ElementsAre("c", "d", "e")) << "in the table's order";
  EXPECT_EQ(part.next(), 0u);
  EXPECT_EQ(part.left_out(), 2u);
  EXPECT_TRUE(packed.part({.first = 9}).rows().empty());
  const std::size_t row = packed.part({}).rows(1).ByteSizeLong();
  EXPECT_THAT(ids_of(packed.part({.first = 1, .most_bytes = 3 * row - 1})), ElementsAre("b", "c"));
  EXPECT_EQ(packed.part({.first = 1, .most_bytes = 3 * row - 1}).next(), 3u);
  EXPECT_THAT(ids_of(packed.part({.first = 1, .most_bytes = 1})), ElementsAre("b")) << "one at least";
  EXPECT_EQ(packed.part({}).SerializeAsString(), table(db, "s").SerializeAsString());
}

}  // namespace
}  // namespace abl::views
