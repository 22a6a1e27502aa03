// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/fingerprints.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"

namespace abl::agent {
namespace fs = std::filesystem;
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostFiles = 20'000;
constexpr auto kLookedJustNow = 2s;  // short runs come one after the other

std::string mark_of(const struct stat& now) {
  return fmt::format("{}:{} {} {}.{}", now.st_dev, now.st_ino, now.st_size, now.st_mtim.tv_sec,
                     now.st_mtim.tv_nsec);
}

}  // namespace

std::string mark_of_data(const fs::path& place) {
  struct stat top {};
  if (::stat(place.c_str(), &top) != 0) return {};
  if (!S_ISDIR(top.st_mode)) return mark_of(top);
  Sha256 digest;
  digest.update(mark_of(top));
  std::size_t files = 0;
  std::deque<fs::path> folders{place};
  while (!folders.empty() && files < kMostFiles) {
    const fs::path folder = std::move(folders.front());
    folders.pop_front();
    std::vector<std::string> names;
    std::error_code unreadable;
    for (auto entry = fs::directory_iterator{folder, unreadable};
         !unreadable && entry != fs::directory_iterator{}; entry.increment(unreadable)) {
      names.push_back(entry->path().filename());
      if (files + names.size() >= kMostFiles) break;  // of millions not even the names are read
    }
    std::ranges::sort(names);
    for (const std::string& name : names) {
      struct stat now {
      }, own{};
      const fs::path path = folder / name;
      ++files;
      digest.update(name);
      if (::stat(path.c_str(), &now) != 0) continue;
      digest.update(mark_of(now));
      // a link to a folder may lead in a circle
      if (S_ISDIR(now.st_mode) && ::lstat(path.c_str(), &own) == 0 && S_ISDIR(own.st_mode))
        folders.push_back(path);
    }
  }
  return fmt::format("{} {}", files, digest.hex());
}

Fingerprints::Fingerprints(Options options, std::function<void()> changed)
    : options_{std::move(options)}, changed_{std::move(changed)} {
  read_cache();
  if (!options_.compute) return;
  thread_ = std::jthread{[this](const std::stop_token& stop) { watch(stop); }};
}

Fingerprints::~Fingerprints() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void Fingerprints::read_cache() {
  if (options_.cache.empty() || !fs::exists(options_.cache)) return;
  try {
    const auto kept = nlohmann::json::parse(read_file(options_.cache));
    for (const auto& [place, entry] : kept.items())
      kept_[place] = {entry.at("mark").get<std::string>(), entry.at("fingerprint").get<std::string>()};
  } catch (const std::exception& error) {  // it only saves time
    log_warning("{} cannot be used: {}; the data sets are read again", options_.cache.string(), error.what());
    kept_.clear();
  }
}

/// With what of places that the worker still has is known.
void Fingerprints::write_cache() const {
  if (options_.cache.empty()) return;
  auto text = nlohmann::json::object();
  for (const auto& [name, place] : options_.data)
    if (const auto kept = kept_.find(place.string()); kept != kept_.end())
      text[place.string()] = {{"mark", kept->second.mark}, {"fingerprint", kept->second.fingerprint}};
  try {
    write_file_atomically(options_.cache, text.dump(1) + "\n");
  } catch (const std::exception& error) {  // of a full disk, which others tell of
    log_warning("{}", error.what());
  }
}

std::map<std::string, std::string> Fingerprints::all() const {
  std::map<std::string, std::string> all;
  const std::scoped_lock lock{mutex_};
  for (const auto& [name, known] : known_)
    if (!known.fingerprint.empty()) all.emplace(name, known.fingerprint);
  return all;
}

/// Whether what is known of the name still holds. What was computed of the same files before is taken over.
/// Returns: whether `all` says something else now.
bool Fingerprints::look(const std::string& name, const fs::path& place) {
  const std::string mark = mark_of_data(place);
  const std::scoped_lock lock{mutex_};
  looked_[name] = std::chrono::steady_clock::now();
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.mark == mark) return false;
  const std::string before = known == known_.end() ? "" : known->second.fingerprint;
  if (!before.empty()) log_info("the data set '{}' has changed: {} is read again", name, place.string());
  const auto kept = kept_.find(place.string());
  if (mark.empty()) {
    known_.erase(name);  // gone: others tell of that
  } else if (kept != kept_.end() && kept->second.mark == mark) {
    known_[name] = kept->second;
  } else {
    known_.erase(name);
    due_.insert(name);
    wake_.notify_all();
  }
  const auto now = known_.find(name);
  return before != (now == known_.end() ? "" : now->second.fingerprint);
}

std::string Fingerprints::of(const std::string& name) {
  const auto place = options_.data.find(name);
  if (place == options_.data.end() || place->second.empty() || !options_.compute) return {};
  bool fresh = false;
  {
    const std::scoped_lock lock{mutex_};
    const auto looked = looked_.find(name);
    fresh = looked != looked_.end() && std::chrono::steady_clock::now() - looked->second < kLookedJustNow;
  }
  if (!fresh && look(name, place->second)) changed_();
  const std::scoped_lock lock{mutex_};
  const auto known = known_.find(name);
  return known == known_.end() ? "" : known->second.fingerprint;
}

void Fingerprints::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool news = false;
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& [name, place] : options_.data)
      if (!place.empty() && !stop.stop_requested()) news = look(name, place) || news;
    if (news) changed_();
    const auto pause = std::max<std::chrono::steady_clock::duration>(
        options_.every, 100 * (std::chrono::steady_clock::now() - begin));
    std::unique_lock lock{mutex_};
    while (!due_.empty() && !stop.stop_requested()) {
      const std::string name = *due_.begin();
      due_.erase(due_.begin());
      const fs::path& place = options_.data.at(name);
      lock.unlock();
      const std::string before = mark_of_data(place);
      Known found{.mark = before, .fingerprint = {}};
      try {
        if (!before.empty()) found.fingerprint = options_.compute(place, stop);
      } catch (const std::exception& error) {
        if (!stop.stop_requested())
          log_warning("the data set '{}' has no fingerprint: {}", name, error.what());
      }
      const bool same = !before.empty() && mark_of_data(place) == before;
      lock.lock();
      if (stop.stop_requested()) return;
      if (!same) continue;  // it changed meanwhile: the next look sees it
      known_[name] = found;
      if (found.fingerprint.empty()) continue;
      kept_[place.string()] = found;
      lock.unlock();
      write_cache();  // this thread alone changes what is kept
      changed_();
      lock.lock();
    }
    wake_.wait_for(lock, stop, pause, [this] { return !due_.empty(); });
  }
}

}  // namespace abl::agent
