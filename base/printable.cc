// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <algorithm>

#include "base/utf8.h"

namespace abl {
namespace {

/// Bytes at the end of `bytes` that begin a character and do not finish it.
std::size_t unfinished(std::string_view bytes) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, bytes.size()); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

/// The character that valid UTF-8 begins with, and how many bytes it takes.
std::pair<char32_t, std::size_t> first_of(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  char32_t point = length == 1 ? lead : lead & (0x7FU >> length);
  for (const char byte : text.substr(1, length - 1))
    point = (point << 6) | (static_cast<unsigned char>(byte) & 0x3FU);
  return {point, length};
}

bool is_control(char32_t point) { return point < 0x20 || (point >= 0x7F && point < 0xA0); }

/// What turns the direction of reading, or ends a line without looking like it.
bool is_direction(char32_t point) {
  return point == 0x061C || point == 0x200E || point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

/// What follows ESC, or is one character of its own: commands whose parameter is a text of any length.
bool opens_string(char32_t point) {
  return point == ']' || point == 'P' || point == 'X' || point == '^' || point == '_';
}

}  // namespace

std::string PrintableStream::next(std::string_view bytes) {
  rest_ += bytes;
  const std::size_t held = unfinished(rest_);
  const std::string text = valid_utf8(std::string_view{rest_}.substr(0, rest_.size() - held));
  rest_.erase(0, rest_.size() - held);
  std::string shown;
  for (std::string_view left = text; !left.empty();) {
    const auto [point, length] = first_of(left);
    take(point, left.substr(0, length), shown);
    left.remove_prefix(length);
  }
  return shown;
}

void PrintableStream::take(char32_t point, std::string_view bytes, std::string& shown) {
  if (state_ == State::kCarriageReturn && point != '\r') {
    if (point != '\n') shown += '\n';
    state_ = State::kText;
  }
  if (point == '\n') state_ = State::kText;  // a sequence that is never finished hides its line alone
  switch (state_) {
    case State::kCarriageReturn:
      return;
    case State::kEscape:
      if (point >= 0x20 && point < 0x30) return;  // its last character is to come
      state_ = point == '[' ? State::kCsi : opens_string(point) ? State::kString : State::kText;
      return;
    case State::kCsi:
      if (point >= 0x40 && point < 0x7F) state_ = State::kText;
      return;
    case State::kString:
      if (point == 0x07 || point == 0x9C) state_ = State::kText;
      if (point == 0x1B) state_ = State::kStringEscape;
      return;
    case State::kStringEscape:
      state_ = point == '\\' ? State::kText : State::kString;
      return;
    case State::kText:
      break;
  }
  if (point == 0x1B) {
    state_ = State::kEscape;
  } else if (point == '\r') {
    state_ = State::kCarriageReturn;
  } else if (point == 0x9B) {
    state_ = State::kCsi;
  } else if (point >= 0x80 && point < 0xA0 && opens_string(point - 0x40)) {  // the same in one character
    state_ = State::kString;
  } else if (point == '\n' || point == '\t' || !(is_control(point) || is_direction(point))) {
    shown += bytes;
  }
}

std::string printable(std::string_view text) {
  return PrintableStream{}.next(valid_utf8(text));  // which leaves no character unfinished
}

std::string printable_line(std::string_view text) {
  std::string line = printable(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

}  // namespace abl
