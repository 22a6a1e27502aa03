// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

}  // namespace abl
