// SPDX-License-Identifier: Apache-2.0
#include "views/query.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace abl::views {
namespace {

/// Of a table, some 10 MB of JSON.
constexpr std::uint32_t kRowsUnlessSaid = 200, kMostRows = 1000, kMostTrials = 5000;

}  // namespace

void Query::allow_only(std::span<const std::string_view> names) const {
  for (const auto& [parameter, value] : parameters)
    if (std::find(names.begin(), names.end(), parameter) == names.end())
      throw Error{Code::kInvalidArgument,
                  names.empty() ? fmt::format("unknown parameter '{}': this address takes none", parameter)
                                : fmt::format("unknown parameter '{}': expected {}", parameter,
                                              fmt::join(names, ", "))};
}

std::optional<std::string> Query::value(std::string_view parameter) const {
  std::vector<std::string> all = values(parameter);
  if (all.size() > 1)
    throw Error{Code::kInvalidArgument,
                fmt::format("parameter '{}' is given {} times, expected once", parameter, all.size())};
  return all.empty() ? std::nullopt : std::optional{std::move(all.front())};
}

std::vector<std::string> Query::values(std::string_view parameter) const {
  std::vector<std::string> found;
  for (const auto& [key, value] : parameters)
    if (key == parameter) found.push_back(value);
  return found;
}

std::uint32_t Query::number_or(std::string_view parameter, std::uint32_t otherwise,
                               std::uint32_t highest) const {
  const auto text = value(parameter);
  return text ? static_cast<std::uint32_t>(parse_number(parameter, *text, 0, highest)) : otherwise;
}

Page Query::page(std::uint32_t otherwise, std::uint32_t most) const {
  return {.first = number_or("first", 0, kHighestId), .count = number_or("count", otherwise, most)};
}

Page Query::page_of_rows() const {
  Page rows = page(kRowsUnlessSaid, kMostRows);
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
