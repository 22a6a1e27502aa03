// SPDX-License-Identifier: Apache-2.0
// $ABLATE_CHECK_QUEUE, with which chaos runs the scheduler: it must not be content with everything.
#include <cstdlib>

#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

class CheckedQueueDeathTest : public CoordinatorTest {
 protected:
  CheckedQueueDeathTest() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    folder.take_in_those_of_death_tests();
    ::setenv("ABLATE_CHECK_QUEUE", "1", 1);
    stop();
    start();
  }
  ~CheckedQueueDeathTest() override { ::unsetenv("ABLATE_CHECK_QUEUE"); }
};

TEST_F(CheckedQueueDeathTest, AQueueThatIsWhatIsStoredIsLeftAlone) {
  submit(sweep_of("s", 3, 2));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  say(worker, ended(1, 2, ablate::v1::RunEnded::STATUS_COMPLETED));
  stop();
  start();
  submit(sweep_of("other", 2, 1));
  EXPECT_EQ(trial(1).state, storage::TrialState::kCompleted);
}

TEST_F(CheckedQueueDeathTest, AQueueThatIsNotWhatIsStoredEndsTheProgram) {
  submit(sweep_of("s", 3, 2));
  const auto change_behind_its_back = [this] {
    storage::Database{folder / "results.db", storage::Database::Mode::kWrite}.execute(
        "UPDATE trial SET state = 'completed' WHERE id = 6");  // that the other sweep does not share
    submit(sweep_of("other", 2, 1));
  };
  EXPECT_DEATH(change_behind_its_back(), "the queue is not what is stored: only in memory: trial 6");
}

}  // namespace
}  // namespace abl::scheduler
