// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

#include "base/printable.h"

namespace abl {
namespace {

std::atomic<LogLevel> lowest{LogLevel::kInfo};

}  // namespace

void set_log_level(LogLevel level) { lowest = level; }

void log_line(LogLevel level, std::string_view message) {
  if (level < lowest) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto since_second = now - std::chrono::floor<std::chrono::seconds>(now);
  std::string line =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z {} {}", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                  since_second.count(), name_of(level), printable(message));
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace abl
