// SPDX-License-Identifier: Apache-2.0
#include "base/placeholders.h"

#include <algorithm>

namespace abl {
namespace {

constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/// "lr" at the beginning of "lr}…"; empty where no name stands before a closing brace.
std::string_view braced_name(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of(kNameLetters), text.size());
  return end < text.size() && text[end] == '}' ? text.substr(0, end) : std::string_view{};
}

bool is_place(std::string_view name) {
  return name == "seed" || name == "run_dir" || name == "data" || name == "checkpoint" ||
         name.starts_with("params.");
}

}  // namespace

std::string fill_placeholders(std::string_view text,
                              const std::function<std::string(const std::string& name)>& value_of) {
  std::string filled;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool after_dollar = at > 0 && text[at - 1] == '$';
    const std::string_view name = rest[0] == '{' && !after_dollar ? braced_name(rest.substr(1)) : "";
    if (rest.starts_with("{{")) {
      filled += '{';
      at += 2;
    } else if (is_place(name)) {
      filled += value_of(std::string{name});
      at += name.size() + 2;
    } else {
      filled += text[at++];
    }
  }
  return filled;
}

std::vector<std::string> placeholders(std::string_view text) {
  std::vector<std::string> names;
  fill_placeholders(text, [&](const std::string& name) {
    names.push_back(name);
    return std::string{};
  });
  return names;
}

std::vector<std::string> other_braces(std::string_view text) {
  constexpr std::string_view kBrackets = " []'\"";
  std::vector<std::string> found;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at)) {
    const std::size_t end = text.find_first_of("{}", at + 1);
    if (text.substr(at).starts_with("{{")) {
      at += 2;
      continue;
    }
    const bool after_dollar = at > 0 && text[at - 1] == '$';
    const bool closed = end != std::string_view::npos && text[end] == '}';
    const std::string_view name = closed ? text.substr(at + 1, end - at - 1) : std::string_view{};
    const bool written = std::ranges::all_of(name, [&](char c) {
      return kNameLetters.find(c) != std::string_view::npos || kBrackets.find(c) != std::string_view::npos;
    });
    const bool text_of_json = name.starts_with('"') || name.starts_with('\'');
    if (!name.empty() && written && !text_of_json && !after_dollar && !is_place(name))
      found.emplace_back(name);
    ++at;
  }
  return found;
}

std::vector<std::string> shell_variables(std::string_view text) {
  std::vector<std::string> names;
  for (auto at = text.find("${"); at != std::string_view::npos; at = text.find("${", at + 2))
    if (const auto name = braced_name(text.substr(at + 2)); !name.empty()) names.emplace_back(name);
  return names;
}

}  // namespace abl
