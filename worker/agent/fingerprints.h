// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

namespace abl::agent {

/// What changes when a data set's files do: of each file and folder its device, inode, size and time of
/// change, of the first 20,000, level by level. Reads no file. Empty: it is not there.
std::string mark_of_data(const std::filesystem::path& place);

/// What a worker's data sets are: their fingerprints, as its trainer reports them. Each is computed once,
/// which may read all of a data set, and kept in a file with the mark of what was read; it is computed again
/// only when that changes. Thread: all methods, from any.
class Fingerprints {
 public:
  /// Computes one. Throws: std::exception where there is none to be had.
  using Compute = std::function<std::string(const std::filesystem::path& place, const std::stop_token& stop)>;
  struct Options {
    std::filesystem::path cache;  ///< file; empty: nothing is kept
    std::map<std::string, std::filesystem::path>
        data;           ///< logical name -> place; empty: the trainer draws it
    Compute compute{};  ///< empty: there is no trainer
    /// Between two looks at all of them; a hundred times as long as a look takes, where that is longer.
    std::chrono::milliseconds every{15'000};
  };
  /// `changed` is called, without a lock held, whenever `all` says something else.
  Fingerprints(Options options, std::function<void()> changed);
  ~Fingerprints();

  /// Logical name -> fingerprint, of those that are known.
  std::map<std::string, std::string> all() const;
  /// The same of one, after a look at whether its files have changed; empty: not known (now). Reads no file.
  std::string of(const std::string& name);

 private:
  struct Known {
    std::string mark, fingerprint;  ///< no fingerprint: none could be had of these files
  };
  void watch(const std::stop_token& stop);
  void read_cache();
  void write_cache() const;
  bool look(const std::string& name, const std::filesystem::path& place);

  const Options options_;
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, Known> known_;  // by name, as its files are now
  std::map<std::string, Known> kept_;   // by place, as they were when they were read
  std::map<std::string, std::chrono::steady_clock::time_point> looked_;
  std::set<std::string> due_;  // names to be computed
  std::jthread thread_;
};

}  // namespace abl::agent
