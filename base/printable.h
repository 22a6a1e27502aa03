// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace abl {

/// Text of others as a terminal may show it: without what would colour it, move the cursor or turn the
/// direction of reading. Escape sequences, control characters but line ends and tabs, and bidirectional
/// controls are left out; a lone carriage return, with which progress bars begin again, is a line end; a byte
/// that is no part of UTF-8 is U+FFFD. For a text that comes in pieces.
/// Thread: one.
class PrintableStream {
 public:
  std::string next(std::string_view bytes);

 private:
  enum class State { kText, kCarriageReturn, kEscape, kCsi, kString, kStringEscape };
  void take(char32_t point, std::string_view bytes, std::string& shown);

  State state_ = State::kText;
  std::string rest_;  ///< the beginning of a character
};

/// The same for a whole text.
std::string printable(std::string_view text);
/// And in one line: line ends and tabs are spaces.
std::string printable_line(std::string_view text);

}  // namespace abl
