// SPDX-License-Identifier: Apache-2.0
#include "storage/read_pool.h"

#include <future>

#include "tests/storage/fixtures.h"

namespace abl::storage {
namespace {

class ReadPoolTest : public StoreTest {
 protected:
  /// Counts for ever, or until it is stopped. Returns: how it ended.
  static Code count(Database& reads) {
    return error_of([&] {
             reads
                 .prepared(
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
                 .one([](const Statement& row) { return row.integer(0); });
           })
        .first;
  }
  ReadPool pool{folder / "results.db", 1};
};

TEST_F(ReadPoolTest, AbandoningEndsWhatIsUnderWayAndWhatWaits) {
  std::promise<void> begun;
  std::promise<Code> ended, next;
  std::promise<bool> told;
  pool.post([&](Database& reads) {
    begun.set_value();
    ended.set_value(count(reads));
  });
  pool.post([&](Database& reads) {
    told.set_value(reads.stopped());
    next.set_value(count(reads));
  });
  begun.get_future().wait();
  EXPECT_EQ(pool.under_way(), 2u);
  pool.abandon_all();
  EXPECT_EQ(ended.get_future().get(), Code::kCancelled);
  EXPECT_TRUE(told.get_future().get());
  EXPECT_EQ(next.get_future().get(), Code::kCancelled);
}

TEST_F(ReadPoolTest, WhatWasPostedIsDoneWhenItHasFinished) {
  int done = 0;
  for (int i = 0; i < 5; ++i) pool.post([&](Database&) { ++done; });
  pool.finish();
  EXPECT_EQ(done, 5);
  EXPECT_EQ(pool.under_way(), 0u);
}

}  // namespace
}  // namespace abl::storage
