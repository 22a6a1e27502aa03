// SPDX-License-Identifier: Apache-2.0
#include "base/fail_point.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/nearest_name.h"

namespace abl {
namespace {

enum class Action { kKill, kStop, kDelay, kError, kEnospc };
constexpr std::string_view name_of(Action action) {
  switch (action) {
    case Action::kKill:
      return "kill";
    case Action::kStop:
      return "stop";
    case Action::kDelay:
      return "delay";
    case Action::kError:
      return "error";
    case Action::kEnospc:
      return "enospc";
  }
  return {};
}

struct Rule {
  FailPoint place{};
  Action action{};
  std::chrono::milliseconds delay{};
  std::uint64_t nth = 0;  ///< 0: each time
  double probability = 1;
  std::uint64_t passed = 0;
};

Guarded<std::vector<Rule>>& rules() {
  static Guarded<std::vector<Rule>> all;
  return all;
}

Error invalid(std::string_view rule, const std::string& why) {
  return Error{Code::kInvalidArgument, fmt::format("$ABLATE_FAIL_POINTS: '{}': {}", rule, why)};
}

/// Takes a number off the front of `text`, behind `mark`.
template <class Number>
Number take_number(std::string_view rule, std::string_view& text, char mark, const char* what) {
  Number number{};
  const char* const first = text.data() + (text.starts_with(mark) ? 1 : 0);
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), number);
  if (!text.starts_with(mark) || error != std::errc{})
    throw invalid(rule, fmt::format("expected {} behind '{}', as in '{}'", what, mark,
                                    "scheduler.before-commit=delay:200@3:0.5"));
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

Rule parse_rule(std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto place = value_named<FailPoint>(name);
  if (!place)
    throw invalid(text, fmt::format("no fail point has the name '{}'{}", name,
                                    did_you_mean(name, names_of<FailPoint>())));
  std::string_view rest = equals == std::string_view::npos ? "" : text.substr(equals + 1);
  const std::string_view word = rest.substr(0, rest.find_first_of(":@"));
  const auto action = value_named<Action>(word);
  if (!action)
    throw invalid(text, fmt::format("expected {} behind '=', not '{}'{}", any_of(names_of<Action>()), word,
                                    did_you_mean(word, names_of<Action>())));
  rest.remove_prefix(word.size());
  Rule rule{.place = *place, .action = *action};
  if ((rule.action == Action::kError || rule.action == Action::kEnospc) && !can_fail(rule.place))
    throw invalid(text, fmt::format("nothing can fail at {}: expected kill, stop or delay", name));
  if (rule.action == Action::kDelay)
    rule.delay =
        std::chrono::milliseconds{take_number<std::uint32_t>(text, rest, ':', "a number of milliseconds")};
  if (rest.starts_with('@')) {
    rule.nth = take_number<std::uint64_t>(text, rest, '@', "a number from 1 on");
    if (rule.nth == 0) throw invalid(text, "times are counted from 1 on");
  }
  if (!rest.empty()) rule.probability = take_number<double>(text, rest, ':', "a probability");
  if (!(rule.probability >= 0 && rule.probability <= 1))
    throw invalid(text, fmt::format("a probability of {}: expected one from 0 to 1", rule.probability));
  if (!rest.empty()) throw invalid(text, fmt::format("'{}' was not expected at its end", rest));
  return rule;
}

bool applies(const Rule& rule) {
  if (rule.nth != 0 && rule.passed != rule.nth) return false;
  if (rule.probability >= 1) return true;
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_real_distribution<double>{}(random) < rule.probability;
}

void carry_out(const Rule& rule) {
  const std::string_view name = name_of(rule.place);
  log_warning("fail point {}: {}", name, name_of(rule.action));
  switch (rule.action) {
    case Action::kKill:
      ::kill(::getpid(), SIGKILL);
      for (;;) ::pause();  // it is delivered to another thread first, perhaps
    case Action::kStop:
      ::kill(::getpid(), SIGSTOP);
      return;
    case Action::kDelay:
      return std::this_thread::sleep_for(rule.delay);
    case Action::kError:
      throw Error{Code::kInternal, fmt::format("fail point {}", name)};
    case Action::kEnospc:
      throw system_error(fmt::format("fail point {}", name), ENOSPC);
  }
}

}  // namespace

void set_fail_points(std::string_view text) {
  std::vector<Rule> parsed;
  while (!text.empty()) {
    const auto comma = text.find(',');
    parsed.push_back(parse_rule(text.substr(0, comma)));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  const bool any = !parsed.empty();
  *rules().lock() = std::move(parsed);
  internal::any_fail_points = any;
}

void read_fail_points() {
  if (const char* text = std::getenv("ABLATE_FAIL_POINTS")) set_fail_points(text);
}

void internal::reach(FailPoint place) {
  std::vector<Rule> due;
  {
    auto held = rules().lock();
    for (Rule& rule : *held) {
      if (rule.place != place) continue;
      ++rule.passed;
      if (applies(rule)) due.push_back(rule);
    }
  }
  for (const Rule& rule : due) carry_out(rule);  // without the lock: others may pass
}

}  // namespace abl
