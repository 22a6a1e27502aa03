// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/instruments.h"
#include "storage/database.h"
#include "storage/log_patience.h"

namespace abl::storage {

/// The one thread that writes. What was posted while a commit was under way becomes one transaction (group
/// commit); every job has a savepoint of its own, so a job that throws undoes only itself. `done` callbacks
/// run on the writer thread after the commit, in order: with nullptr when the job is on disk, with the job's
/// exception, or with the commit's (disk full) for every job of the group.
/// Thread: all methods, from any thread; jobs and callbacks run on the writer's.
class Writer {
 public:
  using Job = std::function<void(Database&)>;
  using Done = std::function<void(std::exception_ptr)>;

  /// How long the write-ahead log may become. It is begun anew only when nobody reads an older state, which
  /// never happens by itself while readers overlap: beyond `bytes` the writer waits for them, at most for
  /// `patience` at a time (see LogPatience).
  struct LogLimit {
    std::int64_t bytes = 64 << 20;
    Milliseconds patience{5000};
  };

  /// Opens the file (kWrite) before it returns.
  /// Throws: as Database.
  explicit Writer(const std::filesystem::path& file, LogLimit limit);
  explicit Writer(const std::filesystem::path& file) : Writer{file, LogLimit{}} {}
  /// Finishes what was posted, and leaves one whole file with an empty log, unless somebody keeps reading an
  /// older state. Of a file that was deleted or replaced meanwhile, a copy lies beside its place:
  /// "results.db.rescued-20261122-130501".
  ~Writer();

  void post(Job job, Done done = {});

  /// What it has done since it was opened. Thread: any.
  struct Figures {
    Tally commits, failed, jobs;        ///< transactions, those that did not commit, jobs
    Histogram seconds{kLatencyBounds};  ///< of a transaction, its commit included
    Histogram jobs_a_commit{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
  };
  const Figures& figures() const { return figures_; }
  /// Jobs that are posted and not settled, and for how long the oldest of them has been waiting.
  struct Backlog {
    std::size_t jobs = 0;
    std::chrono::steady_clock::duration oldest{};
  };
  Backlog backlog();

  /// Called after each commit that has touched something of the queue, before its `done` callbacks, on the
  /// same thread: with the connection, which is in no transaction, and what was touched.
  using Observer = std::function<void(Database&, Touched)>;
  /// To be called before the first job is posted.
  void observe(Observer observer);

  /// Runs `job` and waits for the commit. Throws what the job or the commit throws. Not from the writer
  /// thread.
  template <class F>
  auto call(F job) -> std::invoke_result_t<F, Database&> {
    using Result = std::invoke_result_t<F, Database&>;
    if constexpr (std::is_void_v<Result>) {
      post_and_wait([&](Database& db) { job(db); });
    } else {
      std::optional<Result> result;
      post_and_wait([&](Database& db) { result.emplace(job(db)); });
      return std::move(*result);
    }
  }

 private:
  struct Entry {
    Job job;
    Done done;
    std::chrono::steady_clock::time_point posted;
  };
  void post_and_wait(Job job);
  void run();
  void commit_group(std::deque<Entry> group);
  const std::string& rescued();
  void shorten_log();

  Database db_;
  std::optional<std::string> rescued_;  ///< what became of the records of a file that is gone, where one is
  const LogLimit limit_;
  LogPatience patience_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> queue_;
  std::size_t under_way_ = 0;  // jobs of the transaction of now, the oldest of them posted then:
  std::chrono::steady_clock::time_point under_way_since_;
  Figures figures_;
  Observer observer_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace abl::storage
