// SPDX-License-Identifier: Apache-2.0
#include "base/pattern.h"

#include <re2/re2.h>

namespace abl {
namespace {

constexpr std::int64_t kMostMemory = 2 << 20;  // of the compiled expression and its cache
constexpr std::size_t kLongest = 1000;

re2::RE2::Options options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // logs may hold any bytes
  options.set_log_errors(false);
  options.set_max_mem(kMostMemory);
  return options;
}

/// Debian's RE2 takes a named group as Python writes it alone.
std::string with_python_groups(std::string_view text) {
  std::string written;
  bool in_class = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    written += c;
    if (c == '\\' && at + 1 < text.size()) {
      written += text[++at];
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;  // one that begins with a bracket has it as a character
      for (const char first : {'^', ']'})
        if (at + 1 < text.size() && text[at + 1] == first) written += text[++at];
    } else if (text.substr(at).starts_with("(?<") && at + 3 < text.size() && text[at + 3] != '=' &&
               text[at + 3] != '!') {
      written += "?P";
      ++at;
    }
  }
  return written;
}

std::string problem_of(const std::string& text) {
  if (text.size() > kLongest) return "longer than 1,000 bytes";
  const re2::RE2 alone{text, options()};
  return alone.ok() ? "" : alone.error();
}

}  // namespace

Pattern::Pattern(const std::string& text)
    : problem_{problem_of(text)},
      expression_{std::make_unique<re2::RE2>("(?m)" + (problem_.empty() ? text : ""), options())} {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::is_in(std::string_view text) const {
  return problem_.empty() && re2::RE2::PartialMatch({text.data(), text.size()}, *expression_);
}

GroupPattern::GroupPattern(const std::string& text)
    : problem_{problem_of(with_python_groups(text))},
      expression_{std::make_unique<re2::RE2>(problem_.empty() ? with_python_groups(text) : "", options())} {
  all_groups_ = expression_->NumberOfCapturingGroups();
  for (const auto& [number, name] : expression_->CapturingGroupNames()) {  // in the order of their numbers
    groups_.push_back(name);
    numbers_.push_back(number);
  }
}
GroupPattern::~GroupPattern() = default;
GroupPattern::GroupPattern(GroupPattern&&) noexcept = default;
GroupPattern& GroupPattern::operator=(GroupPattern&&) noexcept = default;

bool GroupPattern::find(std::string_view line, std::vector<std::optional<std::string_view>>& found) const {
  found.clear();
  if (!problem_.empty()) return false;
  std::vector<re2::StringPiece> parts(static_cast<std::size_t>(all_groups_) + 1);
  if (!expression_->Match({line.data(), line.size()}, 0, line.size(), re2::RE2::UNANCHORED, parts.data(),
                          static_cast<int>(parts.size())))
    return false;
  for (const int number : numbers_) {
    const re2::StringPiece& part = parts[static_cast<std::size_t>(number)];
    if (part.data())
      found.emplace_back(std::string_view{part.data(), part.size()});
    else
      found.emplace_back(std::nullopt);
  }
  return true;
}

}  // namespace abl
