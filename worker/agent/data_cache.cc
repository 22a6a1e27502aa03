// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/data_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "worker/agent/fingerprints.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr const char* kDataEnding = ".abldata";
constexpr std::uint64_t kKeepFree = std::uint64_t{1} << 30;  // checkpoints and spools need room too

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

DataCache::DataCache(fs::path folder, std::uint64_t limit) : folder_{std::move(folder)}, limit_{limit} {}

fs::path DataCache::path_of(const std::string& sha256) const { return folder_ / (sha256 + kDataEnding); }

DataCache::Held DataCache::get(const std::string& sha256, std::uint64_t bytes, const Fetch& fetch,
                               const std::function<bool()>& go_on) {
  if (!is_digest(sha256)) return {.file = {}, .hold = {}, .why = "the assignment names no SHA-256"};
  std::shared_ptr<void> holds = hold(sha256);
  const fs::path file = path_of(sha256);
  if (use(sha256)) return {.file = file, .hold = std::move(holds), .why = {}};
  while (!fetching_.try_lock_for(100ms))
    if (!go_on()) return {.file = {}, .hold = {}, .why = "the run was stopped"};
  const std::unique_lock turn{fetching_, std::adopt_lock};
  try {
    make_folder(folder_);
    if (!is_whole(sha256)) {
      if (std::string why = make_room(sha256, bytes); !why.empty())
        return {.file = {}, .hold = {}, .why = std::move(why)};
      if (std::string why = fetch(file); !why.empty()) return {.file = {}, .hold = {}, .why = std::move(why)};
    }
    {
      const std::scoped_lock lock{mutex_};
      verified_[sha256] = mark_of_data(file);
    }
    use(sha256);
  } catch (const std::exception& error) {
    return {.file = {}, .hold = {}, .why = error.what()};
  }
  return {.file = file, .hold = std::move(holds), .why = {}};
}

/// As long as it lives the file, if it is there, is not dropped.
std::shared_ptr<void> DataCache::hold(const std::string& sha256) {
  const std::scoped_lock lock{mutex_};
  std::erase_if(held_, [](const auto& held) { return held.second.expired(); });
  std::shared_ptr<void> hold = held_[sha256].lock();
  if (!hold) held_[sha256] = hold = std::make_shared<int>();
  return hold;
}

/// Notes that a file is used, of a content that was read before. Returns: false where it is not known to be
/// whole.
bool DataCache::use(const std::string& sha256) {
  const std::scoped_lock lock{mutex_};
  const fs::path file = path_of(sha256);
  const auto verified = verified_.find(sha256);
  const std::string mark = mark_of_data(file);
  if (verified == verified_.end() || mark.empty() || verified->second != mark) return false;
  std::error_code ignored;
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
  verified->second = mark_of_data(file);
  return true;
}

/// All of it is read once in the life of this program, and when it has changed.
bool DataCache::is_whole(const std::string& sha256) {
  const fs::path file = path_of(sha256);
  const std::string mark = mark_of_data(file);
  if (mark.empty() || !fs::is_regular_file(fs::symlink_status(file))) return false;
  {
    const std::scoped_lock lock{mutex_};
    if (const auto verified = verified_.find(sha256); verified != verified_.end() && verified->second == mark)
      return true;
  }
  if (sha256_file(file) == sha256) return true;
  log_warning("{} is damaged: it is fetched again", file.string());
  fs::remove(file);
  return false;
}

std::string DataCache::make_room(const std::string& sha256, std::uint64_t bytes) {
  if (bytes > limit_)
    return fmt::format("the data set has {:.1f} MiB, more than this worker keeps (--data-limit-mib {})",
                       mib(bytes), limit_ >> 20);
  for (;;) {
    std::uint64_t used = 0;
    std::optional<fs::path> oldest;
    fs::file_time_type when = fs::file_time_type::max();
    for (const auto& entry : fs::directory_iterator{folder_}) {
      if (!entry.is_regular_file() || entry.path().filename().string().starts_with(sha256)) continue;
      used += entry.file_size();
      const std::string digest = entry.path().filename().string().substr(0, sha256.size());
      {
        const std::scoped_lock lock{mutex_};
        if (const auto held = held_.find(digest); held != held_.end() && !held->second.expired()) continue;
      }
      if (entry.last_write_time() < when) oldest = entry.path(), when = entry.last_write_time();
    }
    struct statvfs disk {};
    const bool known = ::statvfs(folder_.c_str(), &disk) == 0;
    const bool full_disk = known && std::uint64_t{disk.f_bavail} * disk.f_frsize < bytes + kKeepFree;
    if (used + bytes <= limit_ && !full_disk) return {};
    if (!oldest)
      return full_disk ? fmt::format("no room in {}: {:.1f} MiB are needed, and 1 GiB stays free",
                                     folder_.string(), mib(bytes))
                       : fmt::format(
                             "no room for a data set of {:.1f} MiB beside those in use "
                             "(--data-limit-mib {})",
                             mib(bytes), limit_ >> 20);
    const std::string digest = oldest->filename().string().substr(0, sha256.size());
    const std::scoped_lock lock{mutex_};
    if (const auto held = held_.find(digest); held != held_.end() && !held->second.expired()) continue;
    log_info("{} is dropped: a data set that is needed now takes its room", oldest->string());
    fs::remove(*oldest);
    verified_.erase(digest);
  }
}

}  // namespace abl::agent
