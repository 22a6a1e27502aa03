// SPDX-License-Identifier: Apache-2.0
#include "base/duration.h"

#include <charconv>
#include <cstdint>

namespace abl {
namespace {

/// The seconds of one unit; 0: there is none of this name.
std::int64_t unit_seconds(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86'400;
    case 'w':
      return 7 * 86'400;
    default:
      return 0;
  }
}

}  // namespace

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
  constexpr std::int64_t kMost = std::int64_t{1000} * 366 * 86'400;
  const char* const last = text.data() + text.size();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc{} || end + 1 != last || number < 0) return std::nullopt;
  const std::int64_t unit = unit_seconds(*end);
  if (unit == 0 || number > kMost / unit) return std::nullopt;
  return std::chrono::seconds{number * unit};
}

}  // namespace abl
