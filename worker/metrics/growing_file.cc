// SPDX-License-Identifier: Apache-2.0
#include "worker/metrics/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"

namespace abl::metrics {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kTail = 4096;  // that tells whether a file goes on where it was read to
constexpr std::size_t kMostMatches = 1000;

/// Of what opens nothing but a file: a pipe or a device would block, or be changed by it.
int open_regular(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
    throw system_error("cannot open " + file.string(), errno);
  return descriptor;
}

/// Reads up to so many bytes from there; fewer at the end.
std::string read_at(int descriptor, std::uint64_t from, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t got = 0;
  while (got < most) {
    const ssize_t part = ::pread(descriptor, bytes.data() + got, most - got, static_cast<off_t>(from + got));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    got += static_cast<std::size_t>(part);
  }
  bytes.resize(got);
  return bytes;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void add_matches(const fs::path& folder, std::string_view rest, std::vector<fs::path>& matches) {
  if (matches.size() >= kMostMatches) return;
  while (rest.starts_with('/')) rest.remove_prefix(1);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string part{rest.substr(0, slash)};
  rest.remove_prefix(slash);
  const bool is_last = rest.find_first_not_of('/') == std::string_view::npos;
  std::error_code failed;
  const auto take = [&](const fs::path& path) {
    if (!is_last) return add_matches(path, rest, matches);
    if (fs::exists(path, failed) && matches.size() < kMostMatches) matches.push_back(path);
  };
  if (part.empty() || part == ".") {
    if (is_last) return take(folder);
    return add_matches(folder, rest, matches);
  }
  if (part.find_first_of("*?") == std::string::npos) return take(folder / part);
  std::vector<fs::path> found;
  for (auto entry = fs::directory_iterator{folder, failed}; !failed && entry != fs::directory_iterator{};
       entry.increment(failed))
    if (const std::string name = entry->path().filename();
        ::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD | FNM_NOESCAPE) == 0)
      found.push_back(entry->path());
  std::ranges::sort(found);
  for (const fs::path& path : found) take(path);
}

}  // namespace

std::vector<fs::path> matching(const fs::path& root, const std::string& pattern) {
  std::vector<fs::path> matches;
  add_matches(root, pattern, matches);
  return matches;
}

GrowingFile::GrowingFile(fs::path file, fs::path root) : file_{std::move(file)}, root_{std::move(root)} {}

GrowingFile::GrowingFile(GrowingFile&& other) noexcept
    : file_{std::move(other.file_)},
      root_{std::move(other.root_)},
      descriptor_{std::exchange(other.descriptor_, -1)},
      device_{other.device_},
      inode_{other.inode_},
      changed_{other.changed_},
      offset_{other.offset_},
      tail_{std::move(other.tail_)},
      anew_{other.anew_},
      problem_{std::move(other.problem_)} {}

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// Takes hold of what is there now, in place of what it had. Returns: whether it can be read.
bool GrowingFile::open() {
  const int descriptor = open_regular(file_);
  if (descriptor < 0) {
    problem_ = errno == ENOENT ? "" : fmt::format("cannot be read: {}", system_error("", errno).what());
    return false;
  }
  struct stat now {};
  std::error_code failed;
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor), failed);
  const fs::path below = real.lexically_relative(fs::canonical(root_, failed));
  if (::fstat(descriptor, &now) != 0 || !S_ISREG(now.st_mode))
    problem_ = "is not a file";
  else if (failed || below.empty() || *below.begin() == "..")
    problem_ = "lies outside of the run's folder";
  else
    problem_.clear();
  if (!problem_.empty()) {
    ::close(descriptor);
    return false;
  }
  const bool another = descriptor_ >= 0;
  if (another) ::close(descriptor_);
  descriptor_ = descriptor;
  device_ = now.st_dev, inode_ = now.st_ino;
  changed_ = {};
  if (another && !goes_on(descriptor_, static_cast<std::uint64_t>(now.st_size))) begin_anew();
  return true;
}

/// Whether the bytes before the place that was read to are those that were read.
bool GrowingFile::goes_on(int descriptor, std::uint64_t size) const {
  return size >= offset_ && read_at(descriptor, offset_ - tail_.size(), tail_.size()) == tail_;
}

bool GrowingFile::is_replaced() const {
  struct stat now {};
  return ::stat(file_.c_str(), &now) == 0 && (now.st_dev != device_ || now.st_ino != inode_);
}

void GrowingFile::begin_anew() {
  anew_ = anew_ || offset_ > 0;
  offset_ = 0;
  tail_.clear();
}

GrowingFile::Piece GrowingFile::read(std::size_t most) {
  if (descriptor_ < 0 && !open()) return {};
  struct stat now {};
  if (::fstat(descriptor_, &now) != 0) return {};
  if (!same_time(now.st_mtim, changed_)) {
    if (!goes_on(descriptor_, static_cast<std::uint64_t>(now.st_size))) begin_anew();
    changed_ = now.st_mtim;
  }
  Piece piece{.bytes = read_at(descriptor_, offset_, most)};
  if (piece.bytes.empty()) {  // all of it was read: whatever has come to its place is next
    if (!is_replaced() || !open()) return piece;
    piece.bytes = read_at(descriptor_, offset_, most);
  }
  offset_ += piece.bytes.size();
  tail_ += piece.bytes.size() > kTail ? piece.bytes.substr(piece.bytes.size() - kTail) : piece.bytes;
  if (tail_.size() > kTail) tail_.erase(0, tail_.size() - kTail);
  piece.at_end = piece.bytes.size() < most && !is_replaced();
  if (!piece.bytes.empty()) piece.anew = std::exchange(anew_, false);
  return piece;
}

}  // namespace abl::metrics
