// SPDX-License-Identifier: Apache-2.0
// What those hear who watch a sweep, and what it costs, however many they are and however long it is.
#include "scheduler/watch_hub.h"

#include <condition_variable>
#include <deque>
#include <limits>
#include <random>

#include "ablate/v1/sweeps.grpc.pb.h"  // how gRPC reads them too
#include "ablate/v1/sweeps.pb.h"
#include "storage/queue_store.h"
#include "storage/read_pool.h"
#include "tests/scheduler/fixtures.h"

namespace abl::scheduler {
namespace {

using namespace ablate::v1;
using testing::ElementsAre;
using testing::IsEmpty;

/// Takes each message as soon as it is there, or where he is slow one when he is told to.
class HubReader final : public WatchedSweep::Reader, public std::enable_shared_from_this<HubReader> {
 public:
  HubReader(WatchHub& hub, const std::string& sweep, bool slow)
      : hub_{hub}, sweep_{hub.open(sweep)}, slow_{slow} {}

  void start(std::uint64_t since) {
    place_ = sweep_->resume(since);
    sweep_->add(weak_from_this());
    woken();
  }
  void woken() override {
    const std::lock_guard lock{mutex_};
    while (!slow_ && take()) {
    }
    there_.notify_all();
  }
  /// The next message; nothing at the end of the stream, or where nothing comes for very long.
  std::optional<SweepProgress> hear() {
    std::unique_lock lock{mutex_};
    const auto is_there = [this] {
      if (slow_ && heard_.empty()) take();
      return !heard_.empty() || end_;
    };
    if (!there_.wait_for(lock, std::chrono::seconds{60}, is_there) || heard_.empty()) return std::nullopt;
    SweepProgress message = std::move(heard_.front());
    heard_.pop_front();
    return message;
  }
  /// The next message, if it is there.
  std::optional<SweepProgress> hear_now() {
    const std::lock_guard lock{mutex_};
    if (slow_ && heard_.empty()) take();
    if (heard_.empty()) return std::nullopt;
    SweepProgress message = std::move(heard_.front());
    heard_.pop_front();
    return message;
  }
  /// As `hear`, until one says it all, or is the one with that number of trials completed.
  SweepProgress hear_until_completed(std::uint32_t trials) {
    for (;;) {
      auto message = hear();
      if (!message) return {};
      if (!message->more() && message->summary().trials().completed() >= trials) return *std::move(message);
    }
  }
  std::optional<grpc::Status> end() {
    const std::lock_guard lock{mutex_};
    return end_;
  }

 private:
  bool take() {
    WatchedSweep::Next next = sweep_->next(place_);
    if (next.wanted) hub_.request();
    if (next.end) end_ = next.end;
    if (!next.message) return false;
    grpc::ByteBuffer bytes{*next.message};
    EXPECT_TRUE(grpc::SerializationTraits<SweepProgress>::Deserialize(&bytes, &heard_.emplace_back()).ok());
    return true;
  }

  WatchHub& hub_;
  const std::shared_ptr<WatchedSweep> sweep_;
  const bool slow_;
  std::mutex mutex_;
  std::condition_variable there_;
  WatchPlace place_;
  std::deque<SweepProgress> heard_;
  std::optional<grpc::Status> end_;
};

class WatchHubTest : public CoordinatorTest {
 protected:
  WatchHubTest() { open(); }
  ~WatchHubTest() override { close(); }

  /// A table is read with every look.
  void open(WatchHub::Limits limits = {.table_share = 0}) {
    pool = std::make_unique<storage::ReadPool>(folder / "results.db", 1);
    lane = std::make_unique<Lane>(*pool, 1);
    tables = std::make_unique<views::TableCache>(folder / "results.db");
    tables->follow(feed.log());
    hub = std::make_unique<WatchHub>(*lane, feed, *tables, *coordinator, limits);
  }
  void close() {
    pool->finish();
    hub.reset();
    tables.reset();
    lane.reset();
    pool.reset();
  }

  std::shared_ptr<HubReader> watch(const std::string& sweep, std::uint64_t since = 0, bool slow = false) {
    auto reader = std::make_shared<HubReader>(*hub, sweep, slow);
    reader->start(since);
    return reader;
  }
  /// Of SQLite's machine, by all that was read for watchers so far.
  std::int64_t steps() {
    std::promise<std::int64_t> steps;
    pool->post([&](storage::Database& db) { steps.set_value(db.steps()); });
    return steps.get_future().get();
  }
  /// Runs a trial of a sweep to its end in one commit.
  void complete(storage::TrialId id, const std::string& sweep = "s", double value = 80) {
    const storage::RunId run = writer->call([&](storage::Database& db) {
      storage::TrialStore store{db};
      const auto lease = store.lease(id, "w", "host", clock.now(), clock.steady() + 30s).value();
      store.start(lease.run, {.total_steps = 100, .data_fingerprint = "f1"}, clock.now());
      storage::MetricStore{db}.append(
          lease.run, {{.name = "val/top1", .steps = {100}, .values = {value}, .times_ms = {1}}});
      store.end(lease.run, {.state = storage::RunState::kCompleted}, clock.moment());
      return lease.run;
    });
    feed.publish({sweep, run});
  }

  std::unique_ptr<storage::ReadPool> pool;
  std::unique_ptr<Lane> lane;
  std::unique_ptr<views::TableCache> tables;
  std::unique_ptr<WatchHub> hub;
};

/// As sweep_of, of more rows than there are letters.
sweeps::SweepSpec long_sweep(const std::string& name, int rows, int seeds = 1) {
  sweeps::SweepSpec spec = sweep_of(name, 1, seeds);
  const sweeps::Row first = spec.rows.front();
  spec.rows.clear();
  for (int i = 0; i < rows; ++i) {
    sweeps::Row row = first;
    row.id = "r" + std::to_string(i);
    row.config = R"({"row":")" + name + row.id + R"("})";
    row.config_hash = sha256_hex(name + row.id);
    spec.rows.push_back(row);
  }
  return spec;
}

TEST_F(WatchHubTest, EverybodyHearsTheSameMessagesOfWhatChanged) {
  submit(sweep_of("s", 3, 1));
  std::vector<std::shared_ptr<HubReader>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(watch("s"));
  std::uint64_t number = 0;
  for (const auto& reader : readers) {
    const auto first = reader->hear();
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->begins());
    EXPECT_EQ(first->trials_size(), 3);
    EXPECT_TRUE(first->has_table());
    number = std::max(number, first->number());
  }
  complete(2);
  std::vector<std::string> heard;
  for (const auto& reader : readers) {
    const SweepProgress message = reader->hear_until_completed(1);
    ASSERT_EQ(message.trials_size(), 1);
    EXPECT_EQ(message.trials(0).id(), 2u);
    EXPECT_EQ(message.trials(0).state(), TRIAL_STATE_COMPLETED);
    EXPECT_GT(message.number(), number);
    heard.push_back(std::to_string(message.number()));
  }
  EXPECT_THAT(heard, testing::Each(heard.front())) << "one message, made once";
}

TEST_F(WatchHubTest, TenWatchersCostWhatOneCosts) {
  submit(long_sweep("s", 50));
  std::vector<std::shared_ptr<HubReader>> readers{watch("s")};
  readers[0]->hear_until_completed(0);
  const auto cost_of = [&](storage::TrialId trial, std::uint32_t completed) {
    const std::int64_t before = steps();
    complete(trial);
    for (const auto& reader : readers) reader->hear_until_completed(completed);
    return steps() - before;
  };
  storage::TrialId trial = 0;
  const auto least_cost = [&] {  // a look may be of the table as well
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < 5; ++i, ++trial) least = std::min(least, cost_of(trial + 1, trial + 1));
    return least;
  };
  const std::int64_t one = least_cost();
  for (int i = 0; i < 9; ++i) {
    readers.push_back(watch("s"));
    readers.back()->hear_until_completed(trial);
  }
  EXPECT_LE(least_cost(), one * 5 / 4);
}

TEST_F(WatchHubTest, AChangeCostsTheSameHoweverManyTrialsThereAre) {
  std::vector<std::int64_t> costs;
  std::vector<std::shared_ptr<HubReader>> readers;
  storage::TrialId first = 1;
  for (const int rows : {100, 3000}) {
    const std::string name = "s" + std::to_string(rows);
    submit(long_sweep(name, rows));
    readers.push_back(watch(name));
    readers.back()->hear_until_completed(0);
    costs.push_back(std::numeric_limits<std::int64_t>::max());
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::int64_t before = steps();
      complete(first + i, name);
      readers.back()->hear_until_completed(i + 1);
      costs.back() = std::min(costs.back(), steps() - before);
    }
    first += static_cast<storage::TrialId>(rows);
  }
  EXPECT_LE(costs[1], costs[0] * 5 / 4) << "of 3000 trials and of 100";
}

TEST_F(WatchHubTest, ALongSweepBeginsPageByPageAndIsReadOnceForAll) {
  submit(long_sweep("s", 2500, 2));
  const auto first = watch("s");
  std::set<std::uint32_t> trials;
  int messages = 0;
  for (SweepProgress message; messages == 0 || message.more(); ++messages) {
    message = first->hear().value();
    EXPECT_LE(message.trials_size(), 2000);
    for (const TrialSummary& trial : message.trials()) trials.insert(trial.id());
  }
  EXPECT_EQ(trials.size(), 5000u);
  EXPECT_EQ(messages, 3);
  const std::int64_t before = steps();
  const auto second = watch("s");
  SweepProgress last;
  for (int i = 0; i < 3; ++i) last = second->hear().value();
  EXPECT_FALSE(last.more());
  EXPECT_TRUE(last.has_table());
  EXPECT_GT(last.number(), 0u);
  EXPECT_LT(steps() - before, 1000) << "the pages were there";
}

TEST_F(WatchHubTest, AReaderWhoStoppedHearsEverythingAnewAndNothingWaitedForHim) {
  close();
  open({.message_bytes = 20'000, .table_share = 0});
  submit(long_sweep("s", 40));
  const auto stopped = watch("s", 0, /*slow=*/true), other = watch("s");
  EXPECT_TRUE(stopped->hear()->begins());
  other->hear_until_completed(0);
  for (storage::TrialId trial = 1; trial <= 39; ++trial) {
    complete(trial);
    other->hear_until_completed(trial);
  }
  const auto again = stopped->hear();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->begins()) << "what he missed is kept no more";
  EXPECT_EQ(again->trials_size(), 40);
  EXPECT_EQ(again->summary().trials().completed(), 39u);
  complete(40);
  while (const auto message = stopped->hear()) EXPECT_FALSE(message->begins());
  EXPECT_TRUE(stopped->end().value().ok());
}

TEST_F(WatchHubTest, AfterABreakAReaderGoesOnFromItsNumber) {
  submit(sweep_of("s", 4, 1));
  const auto other = watch("s");
  std::uint64_t number = other->hear()->number();
  complete(1);
  number = other->hear_until_completed(1).number();
  complete(2);
  other->hear_until_completed(2);
  const auto back = watch("s", number);
  const auto next = back->hear();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->begins());
  ASSERT_EQ(next->trials_size(), 1);
  EXPECT_EQ(next->trials(0).id(), 2u);
  EXPECT_TRUE(watch("s", 12345)->hear()->begins()) << "a number that is not known";
  EXPECT_TRUE(watch("s", number + 1'000'000'000'000)->hear()->begins());
}

TEST_F(WatchHubTest, ANumberOfALaterSchedulerIsHigher) {
  submit(sweep_of("s", 2, 1));
  const std::uint64_t before = watch("s")->hear()->number();
  const ChangeFeed later;
  EXPECT_GT(later.log().number(), before);
}

/// How many trials of a sweep wait for each reason, as the view has it.
std::map<std::string, std::uint32_t> waiting_in(storage::Database& db, storage::SweepId sweep) {
  const auto rows = db.prepared(R"sql(
      SELECT w.reason, COUNT(*) FROM sweep_trial st JOIN trial_waiting w ON w.trial = st.trial_id
      WHERE st.sweep_id = :sweep AND st.withdrawn = 0 AND w.reason <> '' GROUP BY w.reason)sql")
                        .bind(":sweep", sweep)
                        .all([](const storage::Statement& row) {
                          return std::pair{row.text(0), static_cast<std::uint32_t>(row.integer(1))};
                        });
  return {rows.begin(), rows.end()};
}

std::map<std::string, std::uint32_t> waiting_of(const SweepProgress& message) {
  std::map<std::string, std::uint32_t> waiting;
  for (const Waiting& one : message.waiting()) waiting[one.reason()] = one.trials();
  return waiting;
}

TEST_F(WatchHubTest, WhenAReasonChangesItIsSaidOnceAndNotOfEachTrial) {
  submit(long_sweep("s", 300));
  const auto reader = watch("s");
  const SweepProgress first = reader->hear_until_completed(0);
  EXPECT_EQ(waiting_of(first), read([](auto& db) { return waiting_in(db, 1); }));
  writer->call([](storage::Database& db) { storage::QueueStore{db}.set_waiting(1, "all 7 slots are busy"); });
  feed.publish(storage::Change{});
  const auto next = reader->hear();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->trials_size(), 0);
  EXPECT_THAT(waiting_of(*next), ElementsAre(testing::Pair("all 7 slots are busy", 300)));
}

TEST_F(WatchHubTest, WaitingTrialsAreCountedAsTheViewCountsThem) {
  auto spec = long_sweep("s", 12, 2);
  submit(spec);
  auto other = long_sweep("t", 5);
  other.data = "numbers";
  submit(other);
  const auto reader = watch("s");
  reader->hear_until_completed(0);
  std::minstd_rand random{5};
  const auto any = [&](int count) { return std::uniform_int_distribution{0, count - 1}(random); };
  std::uint64_t number = 0;
  for (int step = 0; step < 150; ++step) {
    writer->call([&](storage::Database& db) {
      storage::TrialStore trials{db};
      storage::SweepStore sweeps{db};
      const auto trial = static_cast<storage::TrialId>(1 + any(24));
      const auto record = trials.get(trial);
      switch (any(8)) {
        case 0:
          storage::QueueStore{db}.set_waiting(1, "reason " + std::to_string(any(3)));
          break;
        case 1:
          sweeps.set_state(1, any(2) == 0 ? storage::SweepState::kPaused : storage::SweepState::kActive,
                           clock.now());
          break;
        case 2:
          sweeps.set_max_running(1, any(2) == 0 ? std::optional<std::uint32_t>{1 + any(3)} : std::nullopt);
          break;
        default:
          if (record.state == storage::TrialState::kQueued) {
            (void)trials.lease(trial, "w", "host", clock.now(), clock.steady() + 30s);
          } else if (record.state == storage::TrialState::kLeased) {
            constexpr storage::RunState kEnds[]{storage::RunState::kFailed, storage::RunState::kLost,
                                                storage::RunState::kStopped};
            (void)trials.end(*record.run, {.state = kEnds[any(3)], .reason = "exit code 3"}, clock.moment());
          }
      }
    });
    feed.publish(storage::Change{"s"});
    if (step % 10 != 0) continue;
    SweepProgress message;
    // A look that was under way may see the first of these commits and not all trials before it; the look
    // that sees the second began after that and has them all.
    for (const int priority : {step, step + 500}) {
      writer->call([&](storage::Database& db) { storage::SweepStore{db}.set_priority(1, priority); });
      feed.publish(storage::Change{"s"});
      do {
        const auto next = reader->hear();
        ASSERT_TRUE(next);
        EXPECT_GT(next->number(), std::exchange(number, next->number()));
        message = *next;
      } while (message.summary().priority() != priority);
    }
    ASSERT_EQ(waiting_of(message), read([](auto& db) { return waiting_in(db, 1); })) << "after step " << step;
  }
}

TEST_F(WatchHubTest, NobodySeesATrialGoBack) {
  submit(long_sweep("s", 2200));  // two pages
  std::minstd_rand random{11};
  const auto any = [&](int count) { return std::uniform_int_distribution{0, count - 1}(random); };
  std::vector<std::shared_ptr<HubReader>> readers;
  std::vector<std::set<std::uint32_t>> completed(6);
  const auto note = [&](std::size_t reader, const SweepProgress& message) {
    for (const TrialSummary& trial : message.trials())
      if (trial.state() == TRIAL_STATE_COMPLETED)
        completed[reader].insert(trial.id());
      else
        EXPECT_FALSE(completed[reader].contains(trial.id())) << "trial " << trial.id();
  };
  storage::TrialId next = 1;
  for (int step = 0; step < 40; ++step) {
    if (readers.size() < completed.size() && step % 8 == 0)
      readers.push_back(watch("s", 0, /*slow=*/readers.size() % 2 == 0));
    complete(step % 2 == 0 ? next : 2201 - next);
    if (step % 2 == 1) ++next;
    for (std::size_t i = 0; i < readers.size(); ++i)
      for (int messages = any(3); messages > 0; --messages)
        if (const auto message = readers[i]->hear_now()) note(i, *message);
  }
  for (std::size_t i = 0; i < readers.size(); ++i)
    while (completed[i].size() < 40) note(i, readers[i]->hear().value());
}

TEST_F(WatchHubTest, ASweepThatIsNotThereIsSaidAndMayComeLater) {
  const auto reader = watch("s");
  EXPECT_FALSE(reader->hear());
  EXPECT_EQ(reader->end().value().error_code(), grpc::StatusCode::NOT_FOUND);
  submit(sweep_of("s", 1, 1));
  EXPECT_TRUE(watch("s")->hear());
}

TEST_F(WatchHubTest, TheStreamEndsWithTheWholeTable) {
  submit(sweep_of("s", 2, 1));
  const auto reader = watch("s");
  reader->hear();
  complete(1);
  complete(2);
  SweepProgress table;
  while (const auto message = reader->hear())
    if (message->has_table()) table = *message;
  EXPECT_TRUE(reader->end().value().ok());
  EXPECT_EQ(table.table().rows(1).cells(0).n(), 1u);
  const auto late = watch("s");
  EXPECT_EQ(late->hear()->trials_size(), 2);
  EXPECT_FALSE(late->hear());
}

TEST_F(WatchHubTest, NothingIsReadWhereNobodyWatches) {
  submit(sweep_of("s", 3, 1));
  watch("s")->hear();
  const std::int64_t before = steps();
  complete(1);
  settle();
  EXPECT_EQ(steps(), before);
}

TEST(LaneTest, TakesNoMoreThreadsThanItIsWide) {
  const TemporaryFolder folder;
  storage::Writer writer{folder / "results.db"};
  storage::ReadPool pool{folder / "results.db", 3};
  Lane lane{pool, 2};
  std::mutex mutex;
  std::condition_variable wake;
  int running = 0, most = 0, done = 0;
  bool go_on = false;
  for (int i = 0; i < 6; ++i)
    lane.post([&](storage::Database&) {
      std::unique_lock lock{mutex};
      most = std::max(most, ++running);
      wake.notify_all();
      wake.wait(lock, [&] { return go_on; });
      --running;
      ++done;
      wake.notify_all();
    });
  {
    std::unique_lock lock{mutex};
    wake.wait(lock, [&] { return running == 2; });
  }
  std::promise<void> quick;
  pool.post([&](storage::Database&) { quick.set_value(); });
  quick.get_future().get();  // finds a thread
  std::unique_lock lock{mutex};
  go_on = true;
  wake.notify_all();
  wake.wait(lock, [&] { return done == 6; });
  EXPECT_EQ(most, 2);
}

TEST_F(WatchHubTest, WhoWatchesASweepThatIsExtendedGetsItAnewWithItsNewRows) {
  submit(sweep_of("s", 2, 1));
  const auto fast = watch("s"), slow = watch("s", 0, true);
  for (const auto& reader : {fast, slow}) reader->hear_until_completed(0);
  complete(1);
  for (const auto& reader : {fast, slow}) reader->hear_until_completed(1);
  const sweeps::SweepSpec grown = sweep_of("s", 4, 1);
  answer_of([&](auto answer) { extend_sweep(*coordinator, grown, {}, answer); });
  settle();
  for (const auto& reader : {fast, slow}) {
    std::map<std::string, ablate::v1::TrialState> trials;
    std::size_t rows = 0;
    bool begun = false;
    for (auto message = reader->hear(); message; message = reader->hear()) {
      if (message->begins()) trials.clear(), begun = true;
      for (const auto& trial : message->trials()) trials[trial.row()] = trial.state();
      if (message->has_table()) rows = static_cast<std::size_t>(message->table().rows_size());
      if (begun && !message->more() && message->summary().rows() == 4 && rows == 4) break;
    }
    EXPECT_TRUE(begun);
    EXPECT_EQ(trials.size(), 4u);
    EXPECT_EQ(trials["a"], TRIAL_STATE_COMPLETED);
    EXPECT_EQ(trials["d"], TRIAL_STATE_QUEUED);
  }
  complete(3);  // and goes on
  EXPECT_EQ(fast->hear_until_completed(2).summary().trials().total(), 4u);
}

}  // namespace
}  // namespace abl::scheduler
