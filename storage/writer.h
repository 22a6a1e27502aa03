// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>

#include "storage/database.h"

namespace abl::storage {

/// The one thread that writes. What was posted while a commit was under way becomes one transaction (group
/// commit); every job has a savepoint of its own, so a job that throws undoes only itself. `done` callbacks
/// run on the writer thread after the commit, in order: with nullptr when the job is on disk, with the job's
/// exception, or with the commit's (disk full) for every job of the group. Thread: all methods, from any
/// thread; jobs and callbacks run on the writer's.
class Writer {
 public:
  using Job = std::function<void(Database&)>;
  using Done = std::function<void(std::exception_ptr)>;

  /// Opens the file (kWrite) before it returns. Throws: as Database.
  explicit Writer(const std::filesystem::path& file);
  ~Writer();  ///< finishes what was posted

  void post(Job job, Done done = {});

  /// Runs `job` and waits for the commit. Throws what the job or the commit throws. Not from the writer
  /// thread.
  template <class F>
  auto call(F job) -> std::invoke_result_t<F, Database&> {
    using Result = std::invoke_result_t<F, Database&>;
    std::promise<void> committed;
    if constexpr (std::is_void_v<Result>) {
      post([&](Database& db) { job(db); }, [&](std::exception_ptr error) { settle(committed, error); });
      committed.get_future().get();
    } else {
      std::optional<Result> result;
      post([&](Database& db) { result.emplace(job(db)); },
           [&](std::exception_ptr error) { settle(committed, error); });
      committed.get_future().get();
      return std::move(*result);
    }
  }

 private:
  struct Entry {
    Job job;
    Done done;
  };
  static void settle(std::promise<void>& promise, std::exception_ptr error) {
    if (error)
      promise.set_exception(error);
    else
      promise.set_value();
  }
  void run();
  void commit_group(std::deque<Entry> group);

  Database db_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace abl::storage
