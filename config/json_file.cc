// SPDX-License-Identifier: Apache-2.0
#include "config/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_depth.h"
#include "base/utf8.h"

namespace abl::config {
namespace {

/// "FILE:3:7" of the byte before `end`.
std::string place(const std::filesystem::path& file, std::string_view text, std::size_t end) {
  const auto before = text.substr(0, std::min(end, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const auto start = before.rfind('\n');
  return fmt::format("{}:{}:{}", file.string(), line,
                     std::max<std::size_t>(1, before.size() - (start == before.npos ? 0 : start + 1)));
}

/// The library's sentence without its own place and number: "syntax error while parsing value - …".
std::string complaint(const Json::parse_error& error) {
  constexpr std::size_t kLongest = 200;  // it repeats what it read last, however long
  std::string text = error.what();
  const auto column = text.find("column ");
  const auto colon = text.find(": ", column == text.npos ? 0 : column);
  if (colon != text.npos) text = text.substr(colon + 2);
  return valid_utf8(text.size() > kLongest ? text.substr(0, kLongest) + "…" : text);
}

}  // namespace

Json read_json(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  if (is_nested_too_deep(text))
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: nested more than {} levels deep", file.string(), kDeepestJson)};
  std::vector<std::set<std::string>> keys;  // of the objects around the place that is read
  const auto check_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Error{Code::kInvalidArgument, fmt::format("{}: the key '{}' stands twice in one object",
                                                      file.string(), parsed.get<std::string>())};
    return true;
  };
  try {
    return Json::parse(text, check_keys);
  } catch (const Json::parse_error& error) {
    throw Error{Code::kInvalidArgument,
                fmt::format("{}: not JSON: {}", place(file, text, error.byte), complaint(error))};
  }
}

}  // namespace abl::config
