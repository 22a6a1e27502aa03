// SPDX-License-Identifier: Apache-2.0
#include "web/server/target.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace abl::web {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0)
        throw Error{
            Code::kInvalidArgument,
            fmt::format("invalid escape in '{}': % must be followed by two hexadecimal digits", text)};
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      throw Error{Code::kInvalidArgument, "the address has a control character in it"};
    decoded += c;
  }
  return decoded;
}

template <class F>
void split(std::string_view text, char separator, F part) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) part(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Target parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/')
    throw Error{Code::kInvalidArgument,
                fmt::format("'{}' is not a path: expected one that starts with /", target)};
  const std::size_t question = std::min(target.find('?'), target.size());
  Target parsed;
  split(target.substr(0, question), '/',
        [&](std::string_view part) { parsed.path.push_back(decode(part, false)); });
  split(target.substr(question), '&', [&](std::string_view part) {
    if (part.front() == '?') part.remove_prefix(1);
    const std::size_t equals = std::min(part.find('='), part.size());
    if (part.empty()) return;
    parsed.query.emplace_back(decode(part.substr(0, equals), true),
                              decode(part.substr(std::min(equals + 1, part.size())), true));
  });
  return parsed;
}

std::string address_of(const Target& target) {
  std::string address;
  for (const std::string& segment : target.path) address += '\0' + segment;
  for (const auto& [name, value] : target.query) address += '\1' + name + '\1' + value;
  return address;
}

std::optional<std::string> match(std::string_view pattern, std::span<const std::string> path) {
  std::vector<std::string_view> wanted;
  split(pattern, '/', [&](std::string_view segment) { wanted.push_back(segment); });
  if (wanted.size() != path.size()) return std::nullopt;
  std::string found;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (wanted[i] == "*")
      found = path[i];
    else if (wanted[i] != path[i])
      return std::nullopt;
  }
  return found;
}

}  // namespace abl::web
