// SPDX-License-Identifier: Apache-2.0
// A store that cannot grow.
#include "tests/scheduler/fixtures.h"
#include "tests/small_disk.h"

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
  const auto [code, message] = answer_of(
      [&](auto answer) { submit_sweep(*coordinator, sweep_of("large", 26, 40), {.priority = 0}, answer); });
  EXPECT_EQ(code, Code::kResourceExhausted);
  EXPECT_THAT(message, HasSubstr("results.db"));
  EXPECT_EQ(coordinator->trouble(), message) << "for those who only read";
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
  EXPECT_EQ(coordinator->trouble(), "");
}

TEST_F(CoordinatorTest, AStoreOnAFullDiskIsWholeAgainWhenThereIsSpace) {
  stop();
  SmallDisk disk;
  writer = std::make_unique<storage::Writer>(disk.path() / "results.db");
  coordinator = std::make_unique<Coordinator>(*writer, clock, policy, feed);
  coordinator->recover();
  submit(sweep_of("s", 2, 1));
  FakeWorker worker = connect({.slots = 2});
  say(worker, started(1, 1));
  say(worker, started(2, 1));
  std::uint64_t stored = 1;
  const auto chatter = [](std::uint64_t seq) {
    auto batch = measured(1, seq, static_cast<double>(seq), static_cast<std::uint32_t>(seq));
    batch.set_log(std::string(100 << 10, 'x'));
    return batch;
  };
  while (!worker.channel->closed()) say(worker, chatter(++stored));
  EXPECT_EQ(worker.channel->closed()->code(), Code::kResourceExhausted);
  --stored;  // the last was not
  disconnect(worker);
  pass(20s);

  disk.free_space();
  pass(1s);
  FakeWorker back = connect({.slots = 2, .runs = {1, 2}});
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", fmt::format("ack 1 {}", stored), "ack 2 1"))
      << "nobody lost a run for the disk";
  for (int i = 0; i < 40; ++i) say(back, chatter(++stored));
  say(back, ended(1, ++stored));
  say(back, ended(2, 2));
  EXPECT_TRUE(submit(sweep_of("large", 26, 40)).created);
  stop();
  storage::Database db{disk.path() / "results.db", storage::Database::Mode::kReadOnly};
  EXPECT_EQ(storage::TrialStore{db}.get(1).state, storage::TrialState::kCompleted);
  EXPECT_EQ(storage::TrialStore{db}.get(2).state, storage::TrialState::kCompleted);
  EXPECT_EQ(storage::MetricStore{db}.summaries(1).at(0).count, stored - 2)
      << "every point that was said, once";
  EXPECT_EQ(
      db.prepared("PRAGMA integrity_check").one([](const storage::Statement& row) { return row.text(0); }),
      "ok");
}

TEST_F(CoordinatorTest, TroubleOfTheStoreOfWhateverKindFailsNoTrial) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  say(worker, started(1, 1));
  writer->call([](storage::Database& db) { db.execute("ALTER TABLE log_chunk RENAME TO away"); });
  auto batch = measured(1, 2, 50);
  batch.set_log("step 1");
  say(worker, batch);
  ASSERT_TRUE(worker.channel->closed()) << "it comes again";
  EXPECT_EQ(run(1).state, RunState::kRunning);
  disconnect(worker);
  writer->call([](storage::Database& db) { db.execute("ALTER TABLE away RENAME TO log_chunk"); });
  FakeWorker back = connect({.runs = {1}});
  say(back, batch);
  EXPECT_THAT(back.take_said(), ElementsAre("welcome", "ack 1 1", "ack 1 2"));
}

TEST_F(CoordinatorTest, LeasesThatEndedWhileTheDiskWasFullAreGivenTime) {
  submit(sweep_of("s", 1, 1));
  FakeWorker worker = connect();
  fill_disk(*writer, true);
  answer_of(
      [&](auto answer) { submit_sweep(*coordinator, sweep_of("large", 26, 40), {.priority = 0}, answer); });
  pass(6s);
  fill_disk(*writer, false);
  pass(12s);
  EXPECT_EQ(run(1).state, RunState::kLeased);
}

}  // namespace
}  // namespace abl::scheduler
