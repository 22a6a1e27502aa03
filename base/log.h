// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <variant>

namespace abl {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
constexpr std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return {};
}

/// How lines are written: for people, or an object of JSON each, for programs that collect logs.
enum class LogFormat { kText, kJson };
constexpr std::string_view name_of(LogFormat format) {
  switch (format) {
    case LogFormat::kText:
      return "text";
    case LogFormat::kJson:
      return "json";
  }
  return {};
}

/// Messages below `level` are dropped from now on; kInfo at first.
void set_log_level(LogLevel level);
/// kText at first.
void set_log_format(LogFormat format);
LogFormat log_format();

/// What a line is of: a member of its object in JSON, unless it is 0 or empty. In text the message alone says
/// it. Refers to what it was made of.
struct LogField {
  LogField(std::string_view name, std::integral auto value)
      : name{name}, value{static_cast<std::int64_t>(value)} {}
  LogField(std::string_view name, std::string_view value) : name{name}, value{value} {}
  std::string_view name;
  std::variant<std::int64_t, std::string_view> value;
};
/// At a call: {{"run", run}, {"worker", worker}}.
using LogFields = std::initializer_list<LogField>;

/// Writes a line to stderr, in one write:
///   2026-01-31T12:00:00.123Z info message
///   {"time":"2026-01-31T12:00:00.123Z","level":"info","message":"message","run":7}
/// Both are valid UTF-8 without control characters or line ends within; of a message beyond 8,000 bytes the
/// rest is left out, of a field's text what is beyond 500.
/// Thread: any.
void log_line(LogLevel level, std::string_view message, LogFields fields = {});

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

// The same of a line that is of something.
template <class... Args>
void log_info(LogFields fields, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...), fields);
}
template <class... Args>
void log_warning(LogFields fields, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...), fields);
}
template <class... Args>
void log_error(LogFields fields, fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...), fields);
}

}  // namespace abl
