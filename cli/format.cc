// SPDX-License-Identifier: Apache-2.0
#include "cli/format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <time.h>

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

std::string format_moment(Time moment, Time now) {
  constexpr std::chrono::days kWeek{6};
  const auto local = [](Time time) {
    const auto seconds =
        static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    return parts;
  };
  const std::tm there = local(moment), here = local(now);
  if (there.tm_year == here.tm_year && there.tm_yday == here.tm_yday) return fmt::format("{:%H:%M}", there);
  return moment - now < kWeek ? fmt::format("{:%a %H:%M}", there) : fmt::format("{:%b %d}", there);
}

std::string format_forecast(const ablate::v1::Forecast& forecast, Time now) {
  if (!forecast.has_seconds()) return forecast.unknown();
  const auto left = std::chrono::duration_cast<Milliseconds>(Seconds{std::min(forecast.seconds(), 1e9)});
  return fmt::format("{} ({})", format_duration(forecast.seconds()), format_moment(now + left, now));
}

std::string forecast_line(const ablate::v1::Forecast& forecast, std::string_view what, Time now) {
  const std::string when = format_forecast(forecast, now);
  if (!forecast.has_seconds()) return fmt::format("{} an unknown time: {}\n", what, when);
  const std::string from = forecast.runs() > 0        ? plural(forecast.runs(), "completed run")
                           : forecast.predicted() > 0 ? "the times predicted"
                                                      : "the rates of its runs";
  std::string text = fmt::format("{} about {}: from {}, {:.{}f} at once", what, when, from,
                                 forecast.at_once(), forecast.at_once() < 9.95 ? 1 : 0);
  if (forecast.predicted() > 0 && forecast.runs() > 0)
    text += fmt::format("; {} of rows without a completed one as predicted",
                        plural(forecast.predicted(), "trial"));
  if (forecast.guessed() > 0)
    text += fmt::format("; {} of rows without a completed one taken as the mean of the others",
                        plural(forecast.guessed(), "trial"));
  return text + "\n";
}

std::string format_rate(double per_second, std::string_view unit) {
  if (!std::isfinite(per_second) || per_second <= 0) return kUnknown;
  if (per_second >= 1) return fmt::format("{:.{}f} {}/s", per_second, per_second < 100 ? 1 : 0, unit);
  if (per_second * 60 >= 1) return fmt::format("{:.1f} {}/min", per_second * 60, unit);
  return fmt::format("{:.1f} {}/h", per_second * 3600, unit);
}

std::string format_millions(double count) { return fmt::format("{:.2f}", count / 1e6); }
std::string format_billions(double count) { return fmt::format("{:.2f}", count / 1e9); }

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1023.95) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

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

std::string date_text(const google::protobuf::Timestamp& time) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(time.seconds())));
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", format_count(count), noun, count == 1 ? "" : "s");
}

std::string seeds_text(std::uint32_t seeds, std::uint32_t min) {
  return min > 0 && min < seeds ? fmt::format("{} to {}", min, plural(seeds, "seed")) : plural(seeds, "seed");
}

}  // namespace abl::cli
