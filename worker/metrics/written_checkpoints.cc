// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/written_checkpoints.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "worker/metrics/growing_file.h"

namespace abl::metrics {
namespace {
constexpr std::chrono::milliseconds kBetweenLooks{500};
}

bool WrittenCheckpoints::State::operator==(const State& other) const {
  return file == other.file && bytes == other.bytes && inode == other.inode &&
         changed.tv_sec == other.changed.tv_sec && changed.tv_nsec == other.changed.tv_nsec;
}

WrittenCheckpoints::WrittenCheckpoints(std::filesystem::path folder, std::string pattern)
    : folder_{std::move(folder)}, pattern_{std::move(pattern)} {}

/// Empty files are begun, not written; what a folder that is a link holds may be of another run, or
/// another's.
std::vector<WrittenCheckpoints::State> WrittenCheckpoints::all() const {
  std::vector<State> all;
  if (pattern_.empty()) return all;
  std::error_code failed;
  const std::filesystem::path root = std::filesystem::canonical(folder_, failed);
  if (failed) return all;
  for (const std::filesystem::path& path : matching(folder_, pattern_)) {
    const std::filesystem::path parent = path.parent_path();
    // what was fetched to be gone on from is of the attempt before
    if (parent == folder_ && path.stem() == "fetched") continue;
    struct stat now {};
    if (::lstat(path.c_str(), &now) != 0 || !S_ISREG(now.st_mode) || now.st_size == 0) continue;
    const std::filesystem::path real = std::filesystem::canonical(parent, failed);
    if (failed || real.lexically_relative(root) != parent.lexically_relative(folder_)) continue;
    all.push_back({path, static_cast<std::uint64_t>(now.st_size), now.st_mtim, now.st_ino});
  }
  return all;
}

std::optional<WrittenCheckpoints::State> WrittenCheckpoints::newest() const {
  std::optional<State> newest;
  for (const State& state : all()) {
    const auto age = [](const timespec& time) { return std::pair{time.tv_sec, time.tv_nsec}; };
    if (newest && age(state.changed) < age(newest->changed)) continue;  // of two at once the later name
    newest = state;
  }
  return newest;
}

std::optional<WrittenCheckpoints::Written> WrittenCheckpoints::look(std::uint32_t step, SteadyTime now) {
  if (pattern_.empty() || now < next_) return std::nullopt;
  next_ = now + kBetweenLooks;
  const auto state = newest();
  if (state != seen_) {
    seen_ = state;
    seen_step_ = step;
    seen_since_ = now;
    said_ = false;
  }
  if (!seen_ || said_ || now - seen_since_ < kQuiet) return std::nullopt;
  said_ = true;
  whole_ = seen_, whole_step_ = seen_step_;
  return Written{seen_->file, seen_step_};
}

std::optional<WrittenCheckpoints::Written> WrittenCheckpoints::last(std::uint32_t step, bool was_killed) {
  const auto state = newest();
  if (!state) return std::nullopt;
  if (was_killed && whole_) {
    const std::vector<State> states = all();
    if (std::ranges::find(states, *whole_) != states.end()) return Written{whole_->file, whole_step_};
  }
  return Written{state->file, state == seen_ ? seen_step_ : step};
}

}  // namespace abl::metrics
