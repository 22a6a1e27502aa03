// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace abl {

/// The last lines of a text that are not empty, in their order, as valid UTF-8. A carriage return ends a line
/// too, as in a progress bar.
std::vector<std::string> last_lines(std::string_view text, std::size_t most);

/// The first line of a text that says something, without the blanks before it; cut at `longest` bytes,
/// between two letters. Empty where there is none.
std::string first_line(std::string_view text, std::size_t longest);

/// The end of what a program says, which tells why it failed. Keeps the last 1,000 bytes.
class LastLines {
 public:
  void add(std::string_view bytes);
  /// Its last three lines, "first | second | third"; empty where there are none.
  std::string text() const;
  /// What is kept, as it came.
  const std::string& bytes() const { return tail_; }

 private:
  std::string tail_;
};

}  // namespace abl
