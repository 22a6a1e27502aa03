// SPDX-License-Identifier: Apache-2.0
#include "views/row_means.h"

#include <cmath>

#include "tests/storage/fixtures.h"

namespace abl::views {
namespace {

using storage::Database;
using storage::StoreTest;
using storage::sweep_of;

class RowMeansTest : public StoreTest {
 protected:
  std::vector<double> means_of(RowMeans& means, const std::string& sweep) {
    RowMeans::Search search = means.begin(reader);
    const storage::Transaction snapshot{reader, storage::Transaction::kRead};
    return search.of(reader, storage::SweepStore{reader}.get_brief(sweep), 0);
  }
  /// What the search costs, without finding the sweep.
  std::int64_t steps_of(RowMeans& means, const std::string& sweep) {
    const auto record = storage::SweepStore{reader}.get_brief(sweep);
    const std::int64_t before = reader.steps();
    RowMeans::Search search = means.begin(reader);
    (void)search.of(reader, record, 0);
    return reader.steps() - before;
  }
  Database reader{folder / "results.db", Database::Mode::kReadOnly};
};

TEST_F(RowMeansTest, ARowHasTheMeanOfItsCompletedTrials) {
  submit(sweep_of("s", 3, 2));  // trials 1 2 3 (seed 0), 4 5 6 (seed 1)
  complete(1, 60), complete(4, 70), complete(2, 50), complete(5, std::nan(""));
  RowMeans means;
  const auto of = means_of(means, "s");
  ASSERT_EQ(of.size(), 3u);
  EXPECT_EQ(of[0], 65);
  EXPECT_TRUE(std::isnan(of[1])) << "one of its values is not finite";
  EXPECT_TRUE(std::isnan(of[2])) << "nothing has completed";
  complete(3, 40);
  EXPECT_EQ(means_of(means, "s")[2], 40) << "nobody says what commits touch: nothing is kept";
}

TEST_F(RowMeansTest, WhereCommitsSayWhatTheyTouchTheseRowsAreReadAnew) {
  submit(sweep_of("s", 20, 3));
  submit(sweep_of("t", 2, 1, "other"));
  for (storage::TrialId trial = 1; trial <= 20; ++trial) complete(trial, trial);
  storage::ChangeLog log;
  db.note_touched();
  RowMeans means;
  means.follow(log);
  const auto whole = steps_of(means, "s");
  const auto nothing = steps_of(means, "s");
  EXPECT_LT(nothing * 3, whole);
  complete(61, 5);  // another sweep's
  complete(21, 11);
  log.add(db.take_touched());
  EXPECT_LT(steps_of(means, "s") * 2, whole);
  EXPECT_EQ(means_of(means, "s")[0], 6);
  EXPECT_EQ(means_of(means, "s")[1], 2);
  EXPECT_EQ(means_of(means, "t")[0], 5);
}

TEST_F(RowMeansTest, AfterMoreThanIsRememberedAllIsReadAnew) {
  submit(sweep_of("s", 3, 1));
  storage::ChangeLog log{0, 1};
  db.note_touched();
  RowMeans means;
  means.follow(log);
  (void)means_of(means, "s");
  complete(1, 60), complete(2, 50);
  log.add(db.take_touched());
  EXPECT_EQ(means_of(means, "s")[0], 60);
  EXPECT_EQ(means_of(means, "s")[1], 50);
}

TEST_F(RowMeansTest, WhatIsKeptIsBounded) {
  submit(sweep_of("s", 3, 1));
  submit(sweep_of("t", 3, 1, "other"));
  storage::ChangeLog log;
  RowMeans means{5};
  means.follow(log);
  const auto anew = steps_of(means, "s");
  (void)means_of(means, "t");
  EXPECT_GE(steps_of(means, "s"), anew) << "both together were too much";
}

}  // namespace
}  // namespace abl::views
