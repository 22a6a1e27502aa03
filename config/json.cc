// SPDX-License-Identifier: Apache-2.0
#include "config/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json_depth.h"
#include "base/utf8.h"

namespace abl::config {
namespace {

void append(std::string& text, const nlohmann::json& value) {
  const char* separator = "";
  if (value.is_object()) {
    text += '{';
    for (const auto& [key, item] : value.items()) {
      text += fmt::format("{}{}:", separator, nlohmann::json(key).dump());
      append(text, item);
      separator = ",";
    }
    text += '}';
  } else if (value.is_array()) {
    text += '[';
    for (const nlohmann::json& item : value) {
      text += separator;
      append(text, item);
      separator = ",";
    }
    text += ']';
  } else if (value.is_number_float()) {
    text += canonical_number(value.get<double>());
  } else {
    text += value.dump();  // integers within 2^53, texts, booleans and null are written alike
  }
}

}  // namespace

std::string canonical_number(double value) {
  if (!std::isfinite(value)) {
    throw Error{Code::kInvalidArgument,
                fmt::format("{} has no form in JSON; expected a finite number", value)};
  }
  if (value == 0) return "0";  // and -0
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::abs(value), std::chars_format::scientific).ptr;
  const std::string_view scientific{buffer, static_cast<std::size_t>(end - buffer)};  // "1.2345e+06"
  const std::size_t e = scientific.find('e');
  std::string digits{scientific.substr(0, 1)};
  if (e > 2) digits += scientific.substr(2, e - 2);
  const int exponent = std::stoi(std::string{scientific.substr(e + 1)});
  const int length = static_cast<int>(digits.size());

  std::string text = value < 0 ? "-" : "";
  if (exponent >= 21 || exponent < -6) {
    text += digits.substr(0, 1);
    if (length > 1) text.append(".").append(digits, 1);
    text += fmt::format("e{}{}", exponent < 0 ? "-" : "+", std::abs(exponent));
  } else if (exponent < 0) {
    text.append("0.").append(static_cast<std::size_t>(-exponent - 1), '0').append(digits);
  } else if (exponent + 1 >= length) {
    text.append(digits).append(static_cast<std::size_t>(exponent + 1 - length), '0');
  } else {
    digits.insert(static_cast<std::size_t>(exponent + 1), 1, '.');
    text += digits;
  }
  return text;
}

std::string canonical_json(const nlohmann::json& value) {
  std::string text;
  try {
    append(text, value);
  } catch (const nlohmann::json::exception& error) {
    throw Error{Code::kInvalidArgument, error.what()};
  }
  return text;
}

std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : canonical_json(value);
}

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
      throw Error{Code::kInvalidArgument,
                  fmt::format("{}: duplicate key '{}'", file.string(), parsed.get<std::string>())};
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
