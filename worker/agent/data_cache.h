// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace abl::agent {

/// Data sets that were pushed to the scheduler's depot and fetched from there, as files named by their
/// SHA-256 in a folder of the worker's. Those that no run has are dropped, the one that was used longest ago
/// first, where a new one needs the room.
/// Thread: all methods, from any.
class DataCache {
 public:
  /// `limit`: bytes of all of them.
  DataCache(std::filesystem::path folder, std::uint64_t limit);

  /// A file that stays as long as this does.
  struct Held {
    std::filesystem::path file;
    std::shared_ptr<void> hold;
    std::string why;  ///< there is none, or empty
  };
  /// Fetches into this file. Returns: why it is not there then, or empty.
  using Fetch = std::function<std::string(const std::filesystem::path& file)>;
  /// The file of this digest and length, fetched where it is not there: one at a time is, for which nobody
  /// waits whose file is there.
  Held get(const std::string& sha256, std::uint64_t bytes, const Fetch& fetch,
           const std::function<bool()>& go_on);

 private:
  std::filesystem::path path_of(const std::string& sha256) const;
  std::shared_ptr<void> hold(const std::string& sha256);
  bool use(const std::string& sha256);
  bool is_whole(const std::string& sha256);
  std::string make_room(const std::string& sha256, std::uint64_t bytes);

  const std::filesystem::path folder_;
  const std::uint64_t limit_;
  std::timed_mutex fetching_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<void>> held_;
  std::map<std::string, std::string> verified_;  // digest -> mark of the file that was read
};

}  // namespace abl::agent
