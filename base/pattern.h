// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace abl {

/// A regular expression that somebody else has written: it takes time in proportion to the text and bounded
/// memory, whatever it is (RE2's syntax: no references back). It is searched for line by line: `^` and `$`
/// are a line's, `.` is no line end. Thread: one.
class Pattern {
 public:
  explicit Pattern(const std::string& text);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// Why it is no pattern, in one line; empty: it is one.
  const std::string& problem() const { return problem_; }
  /// False where it is none.
  bool is_in(std::string_view text) const;

 private:
  std::string problem_;
  std::unique_ptr<re2::RE2> expression_;
};

/// The same with named groups, `(?<acc>[0-9.]+)` or `(?P<acc>[0-9.]+)`, for a line at a time. Thread: one.
class GroupPattern {
 public:
  explicit GroupPattern(const std::string& text);
  ~GroupPattern();
  GroupPattern(GroupPattern&&) noexcept;
  GroupPattern& operator=(GroupPattern&&) noexcept;

  /// As of a Pattern.
  const std::string& problem() const { return problem_; }
  /// Those that have a name, in the order of the text.
  const std::vector<std::string>& groups() const { return groups_; }
  /// What each group has of the first place where the pattern is in the line, in their order; nothing of one
  /// that has no part in it. False: the pattern is not in the line, or is none.
  bool find(std::string_view line, std::vector<std::optional<std::string_view>>& found) const;

 private:
  std::string problem_;
  std::unique_ptr<re2::RE2> expression_;
  std::vector<std::string> groups_;
  std::vector<int> numbers_;  ///< of those groups
  int all_groups_ = 0;
};

}  // namespace abl
