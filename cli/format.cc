// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace abl::cli {
namespace {

constexpr const char* kUnknown = "–";

}  // namespace

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return kUnknown;
  if (seconds < 0.0995) return fmt::format("{:.0f}ms", seconds * 1000);
  if (seconds < 9.95) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d {:02}h", whole / 86400, whole % 86400 / 3600);
}

std::string format_eta(std::optional<double> seconds) {
  return seconds ? format_duration(*seconds) : kUnknown;
}

std::string format_rate(double per_second, std::string_view unit) {
  if (!std::isfinite(per_second) || per_second <= 0) return kUnknown;
  if (per_second >= 1) return fmt::format("{:.{}f} {}/s", per_second, per_second < 100 ? 1 : 0, unit);
  if (per_second * 60 >= 1) return fmt::format("{:.1f} {}/min", per_second * 60, unit);
  return fmt::format("{:.1f} {}/h", per_second * 3600, unit);
}

std::string format_millions(double count) { return fmt::format("{:.2f}", count / 1e6); }
std::string format_billions(double count) { return fmt::format("{:.2f}", count / 1e9); }

std::string format_mib(double bytes) { return fmt::format("{:.2f}", bytes / (1 << 20)); }
std::string format_gib(double bytes) { return fmt::format("{:.2f}", bytes / (1 << 30)); }

std::string format_count(std::uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

std::string format_age(const google::protobuf::Timestamp& time, Time now) {
  if (time.seconds() == 0) return kUnknown;
  const double then = static_cast<double>(time.seconds()) + time.nanos() * 1e-9;
  const double seconds = static_cast<double>(now.time_since_epoch().count()) * 1e-3 - then;
  return format_duration(std::max(0.0, seconds)) + " ago";
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

}  // namespace abl::cli
