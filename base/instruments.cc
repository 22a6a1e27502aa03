// SPDX-License-Identifier: Apache-2.0
#include "base/instruments.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace abl {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Of a label's value, or of a help text, in which quotes stand as they are.
std::string escaped(std::string_view text, bool quoted) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (c == '"' && quoted)) out += '\\';
    out += c;
  }
  return out;
}

/// The fields of /proc/self/stat from the third on: the second, the program's name, may have anything in it.
std::vector<double> process_fields() {
  std::string line;
  std::getline(std::ifstream{"/proc/self/stat"}, line);
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return {};
  std::istringstream rest{line.substr(end + 1)};
  std::vector<double> fields;
  std::string state;
  rest >> state;
  fields.push_back(0);
  for (double field = 0; rest >> field;) fields.push_back(field);
  return fields;
}

std::size_t open_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder{opendir("/proc/self/fd"), closedir};
  if (!folder) return 0;
  std::size_t entries = 0;
  while (readdir(folder.get())) ++entries;
  return entries > 3 ? entries - 3 : 0;  // ".", "..", and the folder itself
}

}  // namespace

Histogram::Histogram(std::initializer_list<double> bounds) : size_{std::min(bounds.size(), kMostBounds)} {
  std::copy_n(bounds.begin(), size_, bounds_.begin());
}

void Histogram::add(double value) {
  const auto end = bounds_.begin() + static_cast<std::ptrdiff_t>(size_);
  const auto at = static_cast<std::size_t>(std::lower_bound(bounds_.begin(), end, value) - bounds_.begin());
  counts_[at].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

Exposition& Exposition::open(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
  return *this;
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view bound, double value) {
  text_ += name_;
  text_ += suffix;
  char separator = '{';
  const auto label = [&](std::string_view name, std::string_view of) {
    text_ += fmt::format("{}{}=\"{}\"", separator, name, escaped(of, true));
    separator = ',';
  };
  for (const auto& [name, of] : labels) label(name, of);
  if (!bound.empty()) label("le", bound);
  if (separator == ',') text_ += '}';
  text_ += ' ' + number(value) + '\n';
}

Exposition& Exposition::add(double value, Labels labels) {
  line("", labels, "", value);
  return *this;
}

Exposition& Exposition::add(const Histogram& histogram, Labels labels) {
  std::uint64_t count = 0;  // of what is read here, so that the parts agree
  for (std::size_t i = 0; i <= histogram.size_; ++i) {
    count += histogram.counts_[i].load(std::memory_order_relaxed);
    line("_bucket", labels, i < histogram.size_ ? number(histogram.bounds_[i]) : "+Inf",
         static_cast<double>(count));
  }
  line("_sum", labels, "", histogram.sum_.load(std::memory_order_relaxed));
  line("_count", labels, "", static_cast<double>(count));
  return *this;
}

void Exposition::add_process() {
  const std::vector<double> fields = process_fields();  // proc(5) counts them from 1, the state is the third
  const auto field = [&](std::size_t at) { return at - 3 < fields.size() ? fields[at - 3] : 0; };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  counter("process_cpu_seconds_total", "Processor time used.").add((field(14) + field(15)) / ticks);
  gauge("process_resident_memory_bytes", "Resident memory.")
      .add(field(24) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  gauge("process_virtual_memory_bytes", "Virtual memory.").add(field(23));
  gauge("process_threads", "Threads.").add(field(20));
  gauge("process_open_fds", "Open descriptors.").add(static_cast<double>(open_descriptors()));
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  gauge("process_max_fds", "Descriptors that it may have open.").add(static_cast<double>(limit.rlim_cur));
  timespec now{}, since_boot{};
  clock_gettime(CLOCK_REALTIME, &now);
  clock_gettime(CLOCK_BOOTTIME, &since_boot);
  gauge("process_start_time_seconds", "When it started, in seconds since 1970.")
      .add(static_cast<double>(now.tv_sec - since_boot.tv_sec) + std::floor(field(22) / ticks));
}

}  // namespace abl
