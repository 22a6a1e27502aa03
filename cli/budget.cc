// SPDX-License-Identifier: Apache-2.0
#include "cli/budget.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <memory>

#include "base/error.h"
#include "cli/format.h"

namespace abl::cli {
namespace {

using std::chrono::system_clock;

std::optional<int> number(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high) return {};
  return value;
}

/// Both moments that a clock may mean where it shows an hour twice; the same one otherwise.
std::pair<Time, Time> moments(std::tm local) {
  const auto at = [&](int summer) {
    std::tm copy = local;
    copy.tm_isdst = summer;
    const std::time_t time = std::mktime(&copy);
    const bool shows = copy.tm_hour == local.tm_hour && copy.tm_min == local.tm_min;
    return std::pair{std::chrono::floor<Milliseconds>(system_clock::from_time_t(time)), shows};
  };
  const auto guess = at(-1), summer = at(1), winter = at(0);
  Time first = guess.first, last = guess.first;
  for (const auto& [time, shows] : {summer, winter})
    if (shows) first = std::min(first, time), last = std::max(last, time);
  return {first, last};
}

[[noreturn]] void refuse(const std::string& text) {
  throw Error{
      Code::kInvalidArgument,
      fmt::format("--until '{}': expected a time such as 18:00, or a date and a time such as '2026-11-24 "
                  "18:00'",
                  text)};
}

}  // namespace

Time moment_of(const std::string& text, Time now) {
  const std::time_t today = system_clock::to_time_t(now);
  std::tm local{};
  ::localtime_r(&today, &local);
  local.tm_sec = 0;
  std::string_view rest = text;
  const auto space = rest.find_first_of(" T");
  const bool dated = space != std::string_view::npos;
  if (dated) {
    const auto year = number(rest.substr(0, std::min<std::size_t>(4, space)), 1970, 9999);
    const bool shaped = space == 10 && rest[4] == '-' && rest[7] == '-';
    const auto month = shaped ? number(rest.substr(5, 2), 1, 12) : std::nullopt;
    const auto day = shaped ? number(rest.substr(8, 2), 1, 31) : std::nullopt;
    if (!year || !month || !day) refuse(text);
    local.tm_year = *year - 1900, local.tm_mon = *month - 1, local.tm_mday = *day;
    rest.remove_prefix(space + 1);
  }
  const auto colon = rest.find(':');
  if (colon == std::string_view::npos || rest.size() - colon != 3) refuse(text);
  const auto hour = number(rest.substr(0, colon), 0, 23), minute = number(rest.substr(colon + 1), 0, 59);
  if (!hour || !minute) refuse(text);
  local.tm_hour = *hour, local.tm_min = *minute;
  for (int days = 0; days < (dated ? 1 : 3); ++days) {
    std::tm day = local;
    day.tm_mday += days;
    day.tm_hour = 12;  // which no change of the clocks moves into another day
    day.tm_isdst = -1;
    std::mktime(&day);
    if (dated && day.tm_mday != local.tm_mday) refuse(text);  // 31 February
    day.tm_hour = *hour, day.tm_min = *minute;
    const auto [first, last] = moments(day);
    if (first > now) return first;
    if (last > now) return last;
  }
  throw Error{Code::kInvalidArgument, fmt::format("--until '{}': that is past", text)};
}

namespace {

CLI::Validator hours() {
  constexpr double kMost = 1e9;
  const auto check = [](const std::string& given) {
    double value = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
    const bool right =
        error == std::errc{} && end == given.data() + given.size() && value >= 0 && value <= kMost;
    return right ? std::string{} : fmt::format("'{}' is not a number of hours, such as 1.5", given);
  };
  return CLI::Validator{check, "", ""};
}

}  // namespace

void add_budget(CLI::App& app, BudgetFlags& flags) {
  app.add_option("--max-gpu-hours", flags.max_gpu_hours,
                 "Start no trial beyond so many GPU hours of its runs in all; 0: no limit")
      ->check(hours())
      ->type_name("HOURS");
  app.add_option(
         "--until", flags.until,
         "Start no trial from then on: 18:00 (tomorrow where that is past), 'YYYY-MM-DD 18:00', or never")
      ->type_name("TIME");
}

ablate::v1::Budget BudgetFlags::message(Time now) const {
  ablate::v1::Budget budget;
  if (max_gpu_hours) budget.set_max_gpu_hours(*max_gpu_hours);
  if (until == "never")
    budget.mutable_until();
  else if (!until.empty())
    budget.mutable_until()->set_seconds(
        std::chrono::duration_cast<std::chrono::seconds>(moment_of(until, now).time_since_epoch()).count());
  return budget;
}

std::string budget_text(const ablate::v1::SweepSummary& sweep) {
  if (!sweep.has_budget()) return {};
  std::string text;
  if (sweep.budget().has_max_gpu_hours())
    text = fmt::format("{:.3g} of {:.4g} GPU hours", sweep.gpu_hours(), sweep.budget().max_gpu_hours());
  if (sweep.budget().has_until()) {
    const std::time_t at = sweep.budget().until().seconds();
    std::tm local{};
    ::localtime_r(&at, &local);
    text += fmt::format("{}until {:%Y-%m-%d %H:%M}", text.empty() ? "" : ", ", local);
  }
  return text;
}

}  // namespace abl::cli
