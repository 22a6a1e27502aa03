// SPDX-License-Identifier: Apache-2.0
#include "protocol/failure.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

namespace abl::protocol {
namespace {

using By = FailureKind::By;

constexpr std::string_view kLog = "log ", kExit = "exit ", kSignal = "signal ";
constexpr int kHighestSignal = 64, kOfShells = 128;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::optional<int> whole_number(std::string_view text, int low, int high) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return std::nullopt;
  return value;
}

/// "SEGV", "SIGSEGV" or "11".
std::optional<int> signal_number(std::string_view text) {
  if (const auto value = whole_number(text, 1, kHighestSignal)) return value;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (int signal = 1; signal < kHighestSignal; ++signal)
    if (const char* name = sigabbrev_np(signal); name && text == name) return signal;
  return std::nullopt;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? name : std::to_string(signal);
}

/// The first rule of a kind; nothing: there is none.
template <class Wanted>
std::optional<std::size_t> find(const RetryRules& rules, By by, Wanted wanted) {
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (rules[i].kind.by == by && wanted(rules[i].kind)) return i;
  return std::nullopt;
}

std::optional<std::size_t> rule_of_class(const RetryRules& rules, FailureClass of) {
  return find(rules, By::kClass, [of](const FailureKind& kind) { return kind.of == of; });
}

std::optional<std::size_t> rule_of_signal(const RetryRules& rules, int signal) {
  return find(rules, By::kSignal, [signal](const FailureKind& kind) { return kind.number == signal; });
}

std::optional<std::size_t> specific_rule(const RetryRules& rules, const Failure& failure) {
  if (const auto by_log = find(rules, By::kLog, [&](const FailureKind& kind) {
        return std::ranges::find(failure.log_patterns, kind.pattern) != failure.log_patterns.end();
      }))
    return by_log;
  if (failure.signal) return rule_of_signal(rules, *failure.signal);
  if (!failure.exit_code) return std::nullopt;
  if (const auto by_code =
          find(rules, By::kExit, [&](const FailureKind& kind) { return kind.number == *failure.exit_code; }))
    return by_code;
  return rule_of_signal(rules, *failure.exit_code - kOfShells);
}

}  // namespace

std::optional<FailureKind> FailureKind::read(std::string_view text) {
  text = trimmed(text);
  if (const auto of = value_named<FailureClass>(text)) return FailureKind{.of = *of};
  if (text == trimmed(kLog)) return FailureKind{.by = By::kLog};  // without a pattern
  if (text.starts_with(kLog))
    return FailureKind{.by = By::kLog, .pattern = std::string{trimmed(text.substr(kLog.size()))}};
  if (text.starts_with(kExit)) {
    if (const auto code = whole_number(trimmed(text.substr(kExit.size())), 1, 255))
      return FailureKind{.by = By::kExit, .number = *code};
  } else if (text.starts_with(kSignal)) {
    if (const auto signal = signal_number(trimmed(text.substr(kSignal.size()))))
      return FailureKind{.by = By::kSignal, .number = *signal};
  }
  return std::nullopt;
}

std::string FailureKind::text() const {
  switch (by) {
    case By::kLog:
      return std::string{kLog} + pattern;
    case By::kExit:
      return std::string{kExit} + std::to_string(number);
    case By::kSignal:
      return std::string{kSignal} + signal_name(number);
    case By::kClass:
      return std::string{name_of(of)};
  }
  return {};
}

std::string to_text(const RetryRules& rules) {
  if (rules.empty()) return {};
  auto list = nlohmann::json::array();
  for (const RetryRule& rule : rules) {
    auto one = nlohmann::json::array({rule.kind.text()});
    if (rule.counts_as)
      one.push_back(name_of(*rule.counts_as));
    else
      one.push_back(rule.attempts);
    list.push_back(std::move(one));
  }
  return list.dump();
}

RetryRules retry_rules(const std::string& text) {
  RetryRules rules;
  const auto list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return rules;
  for (const auto& one : list) {
    if (!one.is_array() || one.size() != 2 || !one[0].is_string()) continue;
    const auto kind = FailureKind::read(one[0].get<std::string>());
    if (!kind) continue;
    RetryRule rule{.kind = *kind};
    if (one[1].is_number_integer())
      rule.attempts = one[1].get<int>();
    else if (one[1].is_string() && value_named<FailureClass>(one[1].get<std::string>()))
      rule.counts_as = value_named<FailureClass>(one[1].get<std::string>());
    else
      continue;
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::vector<std::string> log_patterns(const RetryRules& rules) {
  std::vector<std::string> patterns;
  for (const RetryRule& rule : rules)
    if (rule.kind.by == By::kLog) patterns.push_back(rule.kind.pattern);
  return patterns;
}

Verdict judge(const RetryRules& rules, const Failure& failure) {
  Verdict verdict{.of = failure.of};
  if (rules.empty()) return verdict;
  auto rule = specific_rule(rules, failure);
  verdict.specific = rule.has_value();
  if (!rule) rule = rule_of_class(rules, verdict.of);
  if (rule) verdict.decided_by = rules[*rule].kind.text();
  std::set<FailureClass> seen{verdict.of};
  while (rule && rules[*rule].counts_as) {
    verdict.of = *rules[*rule].counts_as;
    const bool again = !seen.insert(verdict.of).second && rules[*rule].kind.by == By::kClass;
    rule = again ? std::nullopt : rule_of_class(rules, verdict.of);
  }
  verdict.rule = rule;
  return verdict;
}

}  // namespace abl::protocol
