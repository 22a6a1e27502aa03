// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "protocol/csv.h"
#include "worker/agent/held_file.h"

namespace abl::agent {
namespace {

constexpr std::string_view kMetricsHead = "step,metric,value";
constexpr std::size_t kLongestRecord = 1 << 20;
constexpr std::size_t kPointsRemembered = 65'536;

std::string error_text(int error_number) {
  return std::error_code{error_number, std::generic_category()}.message();
}

}  // namespace

MetricsFile::MetricsFile(std::filesystem::path folder, Options options)
    : folder_{std::move(folder)}, options_{std::move(options)} {}

MetricsFile::~MetricsFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string MetricsFile::append(const ablate::v1::RunBatch& batch) {
  if (batch.has_started()) {  // where it went on from, or that it began anew
    if (!batch.started().has_resumed_from_step()) options_.before.clear();
    options_.before_step = batch.started().resumed_from_step();
  }
  if (over_ || batch.series().empty()) return {};
  std::string said;
  if (descriptor_ < 0 && !open(said)) return said;
  struct Point {
    std::uint32_t step;
    int series;
    double value;
  };
  std::vector<Point> points;
  for (int i = 0; i < batch.series_size(); ++i)
    for (int at = 0; at < batch.series(i).steps_size(); ++at)
      points.push_back({batch.series(i).steps(at), i, batch.series(i).values(at)});
  std::ranges::stable_sort(points, {}, &Point::step);
  for (const Point& point : points) {
    const std::string& name = batch.series(point.series).name();
    if (!is_new(name, point.step)) continue;
    pending_ +=
        fmt::format("{},{},{}\n", point.step, protocol::csv_field(name), protocol::csv_number(point.value));
    pending_step_ = point.step;
  }
  if (std::string more = write_pending(); !more.empty()) said = std::move(more);
  return said;
}

std::string MetricsFile::finish() {
  if (over_ || pending_.empty()) return {};
  std::string said = write_pending();
  return pending_.empty() ? said : give_up("there was no room for the rest");
}

/// Returns: whether there is a file to write to; otherwise `said` has why not.
bool MetricsFile::open(std::string& said) {
  const auto file = folder_ / kName;
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    over_ = true;
    said = errno == EEXIST ? fmt::format("{} is the program's own: the worker writes none", kName)
                           : fmt::format("{} cannot be written: {}; the points are stored all the same",
                                         kName, error_text(errno));
    return false;
  }
  pending_ = fmt::format("{}\n", kMetricsHead);
  copy_before();
  return true;
}

/// What the run before has said up to the checkpoint. Without its file this one begins where it goes on.
void MetricsFile::copy_before() {
  if (options_.before.empty()) return;
  try {
    const HeldFile held{options_.before / kName};
    if (!held.is_regular() || !held.lies_under(options_.root) || held.bytes() > options_.most_bytes) return;
    protocol::CsvFile lines{held.path()};
    if (!lines.next(kLongestRecord) || lines.record() != kMetricsHead) return;
    while (lines.next(kLongestRecord) && lines.has_line_end()) {
      const std::string& record = lines.record();
      std::uint32_t step = 0;
      const auto [end, error] = std::from_chars(record.data(), record.data() + record.size(), step);
      if (error != std::errc{} || !std::string_view{end, record.data() + record.size()}.starts_with(','))
        return;
      if (step > options_.before_step) continue;
      pending_ += record + "\n";
      if (pending_.size() >= options_.most_pending / 2 && !write_pending().empty()) return;
    }
    copied_to_ = options_.before_step;
  } catch (const Error&) {  // no descriptor for it: begins here
  }
}

bool MetricsFile::is_new(const std::string& metric, std::uint32_t step) {
  if (copied_to_ > 0 && step <= copied_to_) return false;
  const std::uint64_t key = std::hash<std::string>{}(metric)*0x9e3779b97f4a7c15ULL + step;
  const auto [highest, is_first] = highest_.try_emplace(metric, step);
  if (!is_first && step <= highest->second && recent_.contains(key)) return false;
  highest->second = std::max(highest->second, step);
  recent_.insert(key);
  order_.push_back(key);
  if (order_.size() > kPointsRemembered) recent_.erase(order_.front()), order_.pop_front();
  return true;
}

/// Nobody has written to it since, and it is still what is at its path.
bool MetricsFile::is_ours() const {
  struct stat held {
  }, there{};
  return ::fstat(descriptor_, &held) == 0 && static_cast<std::uint64_t>(held.st_size) == size_ &&
         ::lstat((folder_ / kName).c_str(), &there) == 0 && there.st_dev == held.st_dev &&
         there.st_ino == held.st_ino;
}

/// Writes whole lines or nothing.
std::string MetricsFile::write_pending() {
  if (pending_.empty()) return {};
  if (!is_ours()) return give_up("the program has changed it, so that it is the program's own");
  if (size_ + pending_.size() > options_.most_bytes)
    return give_up(fmt::format("it has {} MiB, as many as it may", options_.most_bytes >> 20));
  std::size_t done = 0;
  int failed = 0;
  while (done < pending_.size() && failed == 0) {
    const auto count = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      failed = errno;
    else
      done += static_cast<std::size_t>(count);
  }
  if (failed == 0) {
    size_ += pending_.size();
    last_step_ = pending_step_;
    pending_.clear();
    return {};
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) return give_up(error_text(errno));
  if (pending_.size() > options_.most_pending) return give_up(error_text(failed));
  if (std::exchange(complained_, true)) return {};
  return fmt::format("{} waits: {}; the points are stored all the same", kName, error_text(failed));
}

std::string MetricsFile::give_up(const std::string& why) {
  over_ = true;
  pending_.clear();
  pending_.shrink_to_fit();
  return fmt::format("{} ends at step {}: {}; the points are stored all the same", kName, last_step_, why);
}

}  // namespace abl::agent
