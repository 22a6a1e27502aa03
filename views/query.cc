// SPDX-License-Identifier: Apache-2.0
#include "views/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/nearest_name.h"

namespace abl::views {
namespace {

/// Of a table, some 10 MB of JSON.
constexpr std::uint32_t kMostTrials = 5000;

const Parameter* find(std::span<const Parameter> declared, std::string_view name) {
  const auto found = std::ranges::find(declared, name, &Parameter::name);
  return found == declared.end() ? nullptr : &*found;
}

const Parameter& declaration(std::span<const Parameter> declared, std::string_view name) {
  if (const Parameter* found = find(declared, name)) return *found;
  throw Error{Code::kInternal, fmt::format("parameter '{}' is read, but not declared", name)};
}

std::uint64_t number_of(const Parameter& parameter, std::string_view text) {
  return parse_number(parameter.name, text, parameter.number->lowest, parameter.number->highest);
}

void check_value(const Parameter& parameter, const std::string& text) {
  if (parameter.number) number_of(parameter, text);
  if (parameter.choices.empty() || text.empty()) return;
  const std::vector<std::string> choices{parameter.choices.begin(), parameter.choices.end()};
  if (std::ranges::find(choices, text) == choices.end())
    throw Error{Code::kInvalidArgument, fmt::format("unknown {} '{}'; expected {}{}", parameter.name, text,
                                                    any_of(choices), did_you_mean(text, choices))};
}

}  // namespace

void Query::check() const {
  for (const auto& [sent, value] : parameters) {
    const Parameter* parameter = find(declared, sent);
    if (!parameter && declared.empty())
      throw Error{Code::kInvalidArgument,
                  fmt::format("unknown parameter '{}': this address takes none", sent)};
    if (!parameter) {
      std::vector<std::string> names;
      for (const Parameter& each : declared) names.emplace_back(each.name);
      throw Error{Code::kInvalidArgument, fmt::format("unknown parameter '{}': expected {}{}", sent,
                                                      any_of(names), did_you_mean(sent, names))};
    }
    check_value(*parameter, value);
  }
  for (const Parameter& parameter : declared) {
    const std::vector<std::string> sent = texts(parameter.name);
    if (sent.size() > 1 && !parameter.repeats)
      throw Error{Code::kInvalidArgument, fmt::format("parameter '{}' is given {} times, expected once",
                                                      parameter.name, sent.size())};
    if (parameter.needed && (sent.empty() || sent.front().empty()))
      throw Error{Code::kInvalidArgument,
                  fmt::format("parameter '{}' is missing: {}", parameter.name, parameter.about)};
  }
}

bool Query::has(std::string_view parameter) const { return !texts(parameter).empty(); }

std::string Query::text(std::string_view parameter) const {
  std::vector<std::string> all = texts(parameter);
  return all.empty() ? "" : std::move(all.front());
}

std::vector<std::string> Query::texts(std::string_view parameter) const {
  (void)declaration(declared, parameter);
  std::vector<std::string> found;
  for (const auto& [key, value] : parameters)
    if (key == parameter) found.push_back(value);
  return found;
}

std::uint64_t Query::long_number(std::string_view parameter) const {
  const Parameter& asked = declaration(declared, parameter);
  const std::vector<std::string> all = texts(parameter);
  return all.empty() ? asked.number->otherwise.value_or(0) : number_of(asked, all.front());
}

std::uint32_t Query::number(std::string_view parameter) const {
  return static_cast<std::uint32_t>(long_number(parameter));
}

std::vector<std::uint32_t> Query::numbers(std::string_view parameter) const {
  const Parameter& asked = declaration(declared, parameter);
  std::vector<std::uint32_t> found;
  for (const std::string& text : texts(parameter))
    found.push_back(static_cast<std::uint32_t>(number_of(asked, text)));
  return found;
}

Page Query::page() const { return {.first = number("first"), .count = number("count")}; }

Page Query::page_of_rows() const {
  Page rows = page();
  rows.most_trials = kMostTrials;
  rows.with_baseline = true;
  return rows;
}

std::uint32_t parse_id(std::string_view what, std::string_view text) {
  return static_cast<std::uint32_t>(parse_number(what, text, 1, kHighestId));
}

std::uint64_t parse_number(std::string_view what, std::string_view text, std::uint64_t lowest,
                           std::uint64_t highest) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < lowest || number > highest)
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: '{}' is not a whole number from {} to {}", what, text, lowest, highest)};
  return number;
}

}  // namespace abl::views
