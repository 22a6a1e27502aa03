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

constexpr std::size_t kLongestMessage = 8000, kLongestField = 500;

std::atomic<LogLevel> lowest{LogLevel::kInfo};
std::atomic<LogFormat> written_as{LogFormat::kText};

/// One line that commands no terminal.
std::string one_line(std::string_view text, std::size_t most) {
  const bool whole = text.size() <= most;
  std::size_t end = std::min(most, text.size());
  while (!whole && end > 0 && (text[end] & 0xC0) == 0x80) --end;  // not within a character
  std::string line = printable(text.substr(0, end));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return whole ? line : line + " …";
}

/// Of one line, as `one_line` leaves it.
void add_quoted(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (c == '\t')
      json += "\\t";
    else
      json += c;
  }
  json += '"';
}

std::string now_text() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto since_second = now - std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     since_second.count());
}

std::string json_line(LogLevel level, std::string_view message, LogFields fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":)", now_text(), name_of(level));
  add_quoted(line, one_line(message, kLongestMessage));
  for (const LogField& field : fields) {
    const auto* text = std::get_if<std::string_view>(&field.value);
    const auto* number = std::get_if<std::int64_t>(&field.value);
    if (text ? text->empty() : *number == 0) continue;
    line += ',';
    add_quoted(line, field.name);
    line += ':';
    if (text)
      add_quoted(line, one_line(*text, kLongestField));
    else
      line += std::to_string(*number);
  }
  return line + '}';
}

}  // namespace

void set_log_level(LogLevel level) { lowest = level; }
void set_log_format(LogFormat format) { written_as = format; }
LogFormat log_format() { return written_as; }

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  if (level < lowest) return;
  std::string line = written_as == LogFormat::kJson ? json_line(level, message, fields)
                                                    : fmt::format("{} {} {}", now_text(), name_of(level),
                                                                  one_line(message, kLongestMessage));
  line += '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace abl
