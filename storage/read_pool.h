// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "storage/database.h"

namespace abl::storage {

/// A few threads, each with a read-only connection: queries stay off the network's threads and off the
/// writer's. The file must exist.
/// Thread: `post`, `under_way`, `full` and `abandon_all` from any.
class ReadPool {
 public:
  using Job = std::function<void(Database&)>;

  ReadPool(const std::filesystem::path& file, int threads);
  ~ReadPool() { finish(); }

  /// `job` reports its own errors: it must not throw. Once `stop` is requested, its queries end with
  /// Error{kCancelled}.
  void post(Job job, std::stop_token stop = {});
  /// Jobs that were posted and are not done yet.
  std::size_t under_way();
  /// More wait already than can be answered soon: a new request is better refused.
  bool full();
  /// The same as a stop of every job, of those to come too.
  void abandon_all() { abandoned_.request_stop(); }
  /// Runs what was posted and ends the threads: nothing may be posted afterwards.
  void finish();

  /// Room for an answer on its way, of all those together; given back when this ends.
  /// Thread: one.
  class Room {
   public:
    /// What one answer takes while it is put together: all are bounded, in rows, runs or points.
    static constexpr std::size_t kToBegin = 16 << 20;

    explicit Room(ReadPool& pool) : pool_{pool} {}
    ~Room() { pool_.on_their_way_ -= bytes_; }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    /// Takes that much from now on, more or less than before.
    /// Throws: Error{kResourceExhausted} when there is none left for what is more; nothing changes then.
    void resize(std::size_t bytes);

   private:
    ReadPool& pool_;
    std::size_t bytes_ = 0;
  };
  static constexpr std::size_t kMostBytes = 256 << 20;  ///< of all answers on their way

 private:
  struct Entry {
    Job job;
    std::stop_token stop;
  };
  void run(Database& db);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Entry> queue_;
  std::size_t running_ = 0;
  bool stopping_ = false;
  std::stop_source abandoned_;
  std::atomic<std::size_t> on_their_way_ = 0;
  std::vector<std::unique_ptr<Database>> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace abl::storage
