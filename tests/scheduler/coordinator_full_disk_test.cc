// SPDX-License-Identifier: Apache-2.0
// A store that cannot grow.
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using storage::RunState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Lets the store grow no further, as a full disk would, and again.
void fill_disk(storage::Writer& writer, bool full) {
  writer.call([full](storage::Database& db) {
    db.execute(full ? "PRAGMA max_page_count = 1" : "PRAGMA max_page_count = 1000000");
  });
}

TEST_F(CoordinatorTest, AFullDiskAcknowledgesNothingAndTheSchedulerGoesOnAfterwards) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  worker.take_said();
  fill_disk(*writer, true);
  const auto [code, message] =
      answer_of([&](auto answer) { coordinator->submit(sweep_of("large", 26, 40), 0, answer); });
  EXPECT_EQ(code, Code::kResourceExhausted);
  EXPECT_THAT(message, HasSubstr("results.db"));
  auto large = measured(1, 2, 50);
  large.set_log(std::string(1 << 20, 'x'));
  say(worker, large);
  EXPECT_THAT(worker.take_said(), IsEmpty()) << "no acknowledgement of what is not stored";
  ASSERT_TRUE(worker.channel->closed());
  EXPECT_EQ(worker.channel->closed()->code(), Code::kResourceExhausted);
  disconnect(worker);

  fill_disk(*writer, false);
  FakeWorker back = connect({.runs = {1}});
  say(back, large);
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "ack 1 1", "ack 1 2"));
  EXPECT_TRUE(submit(sweep_of("large", 26, 40)).created);
}

TEST_F(CoordinatorTest, LeasesThatEndedWhileTheDiskWasFullAreGivenTime) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  fill_disk(*writer, true);
  answer_of([&](auto answer) { coordinator->submit(sweep_of("large", 26, 40), 0, answer); });
  pass(6s);
  fill_disk(*writer, false);
  pass(12s);
  EXPECT_EQ(run(1).state, RunState::kLeased);
}

}  // namespace
}  // namespace abl::scheduler
