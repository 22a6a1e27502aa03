// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "config/document/result_version.h"
#include "config/trial_config.h"
#include "scheduler/coordinator.h"
#include "scheduler/status.h"
#include "scheduler/sweep_control.h"
#include "storage/metric_store.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "tests/temporary_folder.h"

namespace abl::scheduler {

using namespace std::chrono_literals;

/// Ends a trial in the store, as its run's last batch does.
inline void complete_stored(storage::Database& db, storage::TrialId trial, double value) {
  const auto run = static_cast<std::int64_t>(trial);
  db.execute("INSERT OR IGNORE INTO metric (id, name) VALUES (1, 'val/top1')");
  db.prepared(
        "INSERT INTO run (id, trial_id, attempt, state, worker, host, leased_ms, lease_expires_ms, curves) "
        "VALUES (:run, :run, 1, 'completed', 'w', 'h', 1, 1, :run)")
      .bind(":run", run)
      .run();
  db.prepared(
        "INSERT INTO metric_summary (run_id, metric_id, count, finite, sum, min, max, last, last_step) "
        "VALUES "
        "(:run, 1, 1, 1, :value, :value, :value, :value, 1)")
      .bind(":run", run)
      .bind(":value", value)
      .run();
  db.prepared("UPDATE trial SET run_id = :run, state = 'completed' WHERE id = :run").bind(":run", run).run();
}

/// A clock that moves when told to.
class FakeClock final : public Clock {
 public:
  Time now() const override { return now_.load(); }
  Time steady() const override { return steady_.load(); }
  void pass(Milliseconds time) {
    now_ = now_.load() + time;
    steady_ = steady_.load() + time;
  }
  /// Somebody sets the clock on the wall.
  void set(Milliseconds by) { now_ = now_.load() + by; }
  /// The machine is started again: what was measured before means nothing now.
  void boot() { steady_ = Time{std::chrono::hours{1}}; }

 private:
  std::atomic<Time> now_{Time{std::chrono::hours{480'000}}}, steady_{now_.load()};
};

/// A sweep of the rows a, b, c … with one metric column, as the parser would give it.
inline sweeps::SweepSpec sweep_of(const std::string& name, int rows, int seeds,
                                  const std::string& data = "shapes") {
  sweeps::SweepSpec spec{.name = name, .file = name + ".yaml", .text = "name: " + name, .data = data};
  nlohmann::json canonical{{"name", name}, {"rows", nlohmann::json::object()}};
  for (int row = 0; row < rows; ++row) {
    const std::string id(1, static_cast<char>('a' + row));
    spec.rows.push_back({.id = id,
                         .label = "row " + id,
                         .config = R"({"row":")" + id + R"("})",
                         .config_hash = sha256_hex(id),
                         .result_version = config::newest_result_version()});
    canonical["rows"][id] = {{"label", "row " + id}};
  }
  spec.canonical = canonical.dump();
  for (int seed = 0; seed < seeds; ++seed) spec.seeds.push_back(seed);
  spec.table.columns.push_back({.name = "acc", .heading = "acc", .source = "val/top1"});
  return spec;
}

/// As `sweep_of`, of trials that all start from the weights of that name.
inline sweeps::SweepSpec tuning_of(const std::string& name, int rows, const std::string& weights,
                                   const std::string& sha256 = "") {
  sweeps::SweepSpec spec = sweep_of(name, rows, 1);
  for (sweeps::Row& row : spec.rows) row.weights = {{weights, sha256}};
  return spec;
}

/// The worker's end of a session without a network: keeps what was sent to it.
class FakeChannel final : public WorkerChannel {
 public:
  void send(ablate::v1::SchedulerMessage message) override {
    const std::lock_guard lock{mutex_};
    messages_.push_back(std::move(message));
  }
  void close(const Error& reason) override {
    const std::lock_guard lock{mutex_};
    if (!closed_) closed_ = reason;
  }
  std::optional<Error> closed() const {
    const std::lock_guard lock{mutex_};
    return closed_;
  }
  /// What was sent since the call before.
  std::vector<ablate::v1::SchedulerMessage> take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(messages_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ablate::v1::SchedulerMessage> messages_;
  std::optional<Error> closed_;
};

struct WorkerOptions {
  std::string name = "w";
  int slots = 1;
  std::string device = "cpu";
  std::vector<std::string> data = {"shapes"};
  std::uint32_t result_version = static_cast<std::uint32_t>(config::newest_result_version());
  bool allows_commands = false;
  std::string instance = "first";
  std::vector<std::uint32_t> runs = {};  ///< that it still has, one for each slot from the first on
  std::vector<std::string> weights = {};
  std::map<std::uint32_t, std::string> tokens = {};  ///< of `runs`, where the worker says them
  std::uint64_t slot_memory = 0;                     ///< bytes
  bool takes_sources = true;
  std::string address{};                            ///< of a worker that takes part in runs of several
  std::map<std::uint32_t, std::string> parts = {};  ///< of others' runs, with their tokens
};

inline ablate::v1::Hello hello_of(const WorkerOptions& options) {
  ablate::v1::Hello hello;
  hello.set_lowest_protocol(1);
  hello.set_highest_protocol(1);
  hello.set_name(options.name);
  hello.set_host(options.name + "-host");
  hello.set_instance(options.instance);
  hello.set_result_version(options.result_version);
  hello.set_allows_commands(options.allows_commands);
  hello.set_takes_sources(options.takes_sources);
  for (const std::string& data : options.data) hello.add_data(data);
  for (const std::string& weights : options.weights) hello.add_weights(weights);
  for (int i = 0; i < options.slots; ++i) {
    ablate::v1::Slot& slot = *hello.add_slots();
    slot.set_index(static_cast<std::uint32_t>(i));
    slot.set_memory_bytes(options.slot_memory);
    slot.set_device(options.device == "cuda" ? "cuda:" + std::to_string(i) : options.device);
    if (i < static_cast<int>(options.runs.size())) slot.set_run(options.runs[static_cast<std::size_t>(i)]);
  }
  for (const std::uint32_t run : options.runs) hello.add_runs(run);
  hello.set_address(options.address);
  hello.mutable_parts()->insert(options.parts.begin(), options.parts.end());
  hello.mutable_tokens()->insert(options.tokens.begin(), options.tokens.end());
  return hello;
}

inline ablate::v1::RunBatch batch_of(std::uint32_t run, std::uint64_t seq) {
  ablate::v1::RunBatch batch;
  batch.set_run(run);
  batch.set_seq(seq);
  return batch;
}
inline ablate::v1::RunBatch started(std::uint32_t run, std::uint64_t seq,
                                    const std::string& fingerprint = "f1") {
  ablate::v1::RunBatch batch = batch_of(run, seq);
  batch.mutable_started()->set_total_steps(100);
  batch.mutable_started()->set_data_fingerprint(fingerprint);
  batch.mutable_started()->set_bit_exact(true);
  return batch;
}
/// A start with the digest of its weights.
inline ablate::v1::RunBatch started_from(std::uint32_t run, std::uint64_t seq, const std::string& weights,
                                         const std::string& sha256) {
  ablate::v1::RunBatch batch = started(run, seq);
  (*batch.mutable_started()->mutable_weights())[weights] = sha256;
  return batch;
}
inline ablate::v1::RunBatch measured(std::uint32_t run, std::uint64_t seq, double value,
                                     std::uint32_t step = 100) {
  ablate::v1::RunBatch batch = batch_of(run, seq);
  ablate::v1::Series& series = *batch.add_series();
  series.set_name("val/top1");
  series.add_steps(step);
  series.add_values(value);
  series.add_times_ms(1);
  return batch;
}
inline ablate::v1::RunBatch ended(
    std::uint32_t run, std::uint64_t seq,
    ablate::v1::RunEnded::Status status = ablate::v1::RunEnded::STATUS_COMPLETED,
    const std::string& reason = "", bool retryable = true) {
  ablate::v1::RunBatch batch = batch_of(run, seq);
  batch.mutable_ended()->set_status(status);
  batch.mutable_ended()->set_reason(reason);
  batch.mutable_ended()->set_retryable(retryable);
  batch.mutable_ended()->set_asked(status == ablate::v1::RunEnded::STATUS_STOPPED);
  return batch;
}

/// One worker that says what the test tells it to.
struct FakeWorker {
  std::shared_ptr<FakeChannel> channel = std::make_shared<FakeChannel>();
  std::shared_ptr<const Session> session;
  std::vector<ablate::v1::Assign> assigned;
  std::vector<std::string> said;  ///< other messages, as "ack 1 2", "fenced 1", "stop 1 paused"

  /// Sorts what has arrived.
  void look() {
    for (const auto& message : channel->take()) {
      if (message.has_assign()) assigned.push_back(message.assign());
      if (message.has_ack())
        said.push_back(fmt::format("ack {} {}", message.ack().run(), message.ack().seq()));
      if (message.has_fenced())
        said.push_back(
            fmt::format("fenced {}{}", message.fenced().part() ? "part of " : "", message.fenced().run()));
      if (message.has_stop())
        said.push_back(fmt::format("stop {}{}{} {}", message.stop().part() ? "part of " : "",
                                   message.stop().run(), message.stop().lost() ? " as lost" : "",
                                   message.stop().reason()));
      if (message.has_welcome()) said.push_back("welcome");
    }
  }
  std::vector<ablate::v1::Assign> take_assigned() {
    look();
    return std::exchange(assigned, {});
  }
  std::vector<std::string> take_said() {
    look();
    return std::exchange(said, {});
  }
};

/// A coordinator on a store of its own, without network or timer.
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() { start(); }
  ~CoordinatorTest() override { stop(); }

  void start() {
    writer = std::make_unique<storage::Writer>(folder / "results.db");
    coordinator = std::make_unique<Coordinator>(*writer, clock, policy, feed);
    coordinator->recover();
  }
  void stop() {
    writer.reset();  // ends with callbacks into the coordinator
    coordinator.reset();
  }

  /// Waits until what was posted, what that led to, and what that led to, is done. The queue in memory is as
  /// the store has it then.
  void settle() {
    for (int i = 0; i < 4; ++i) answer_of([&](auto answer) { coordinator->store_counts({}, answer); });
    const auto [queue, stored] = coordinator->queue_and_store();
    EXPECT_EQ(queue, stored);
  }

  /// The error that a call is answered with, or kOk.
  template <class Call>
  std::pair<Code, std::string> answer_of(Call call) {
    std::promise<grpc::Status>
        promise;  // not the exception: ThreadSanitizer cannot see how libstdc++ counts its owners
    call([&](std::exception_ptr error, const auto&...) { promise.set_value(to_status(error)); });
    const grpc::Status status = promise.get_future().get();
    return {static_cast<Code>(status.error_code()), status.error_message()};
  }

  Submission submit(const sweeps::SweepSpec& spec, int priority = 0) {
    std::promise<Submission> promise;
    submit_sweep(*coordinator, spec, {.priority = priority},
                 [&](std::exception_ptr error, const Submission& submission) {
                   if (error)
                     promise.set_exception(error);
                   else
                     promise.set_value(submission);
                 });
    const Submission submission = promise.get_future().get();
    settle();
    return submission;
  }

  FakeWorker connect(const WorkerOptions& options = {}) {
    FakeWorker worker;
    worker.session = coordinator->open_session(hello_of(options), worker.channel);
    settle();
    worker.look();
    return worker;
  }
  void say(FakeWorker& worker, const ablate::v1::RunBatch& batch) {
    ablate::v1::WorkerMessage message;
    *message.mutable_batch() = batch;
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
  void heartbeat(FakeWorker& worker, const std::vector<std::uint32_t>& runs) {
    ablate::v1::WorkerMessage message;
    message.mutable_heartbeat()->mutable_runs()->Add(runs.begin(), runs.end());
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
  void refuse(FakeWorker& worker, std::uint32_t run, const std::string& reason, bool permanent) {
    ablate::v1::WorkerMessage message;
    message.mutable_refused()->set_run(run);
    message.mutable_refused()->set_reason(reason);
    message.mutable_refused()->set_permanent(permanent);
    coordinator->receive(worker.session, message);
    settle();
    worker.look();
  }
  void disconnect(FakeWorker& worker) {
    coordinator->disconnected(worker.session);
    settle();
  }

  /// Lets time pass second by second, as the timer of a server would.
  void pass(std::chrono::seconds time) {
    for (auto i = 0s; i < time; ++i) {
      clock.pass(1s);
      coordinator->tick();
      settle();
    }
  }

  template <class Read>
  auto read(Read look) {
    storage::Database db{folder / "results.db", storage::Database::Mode::kReadOnly};
    return look(db);
  }
  storage::TrialRecord trial(storage::TrialId id) {
    return read([&](storage::Database& db) { return storage::TrialStore{db}.get(id); });
  }
  storage::RunRecord run(storage::RunId id) {
    return read([&](storage::Database& db) { return storage::TrialStore{db}.run(id); });
  }

  TemporaryFolder folder;
  FakeClock clock;
  LeasePolicy policy;
  ChangeFeed feed{0ms};
  std::unique_ptr<storage::Writer> writer;
  std::unique_ptr<Coordinator> coordinator;
};

}  // namespace abl::scheduler
