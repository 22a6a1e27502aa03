// SPDX-License-Identifier: Apache-2.0
#include "printing/medium.h"

#include <fmt/format.h>

#include <algorithm>
#include <cwchar>

namespace abl::printing {
namespace {

const char* code(Style style) {
  switch (style) {
    case Style::kBold:
      return "1";
    case Style::kDim:
      return "2";
    case Style::kUnderline:
      return "4";
    case Style::kRed:
      return "31";
    case Style::kGreen:
      return "32";
    case Style::kYellow:
      return "33";
    case Style::kCyan:
      return "36";
  }
  return "0";
}

/// One step through a text: an escape sequence (no columns) or a code point.
struct Piece {
  std::string_view bytes;
  int columns = 0;
};

Piece next_piece(std::string_view text) {
  if (text[0] == '\x1b') {
    std::size_t end = text.find('m');
    end = end == std::string_view::npos ? text.size() : end + 1;
    return {text.substr(0, end), 0};
  }
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  const auto bytes = text.substr(0, length);
  if (lead < 0x80) return {bytes, lead < 0x20 ? 0 : 1};
  wchar_t point = lead & (0x7F >> length);
  for (const char c : bytes.substr(1)) point = (point << 6) | (static_cast<unsigned char>(c) & 0x3F);
  const int columns = wcwidth(point);  // -1 in the C locale: the usual width then
  return {bytes, columns < 0 ? 1 : columns};
}

}  // namespace

std::string Medium::paint(Style style, std::string_view text) const {
  if (!colour() || text.empty()) return std::string{text};
  return fmt::format("\x1b[{}m{}\x1b[0m", code(style), text);
}

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Piece piece = next_piece(text);
    columns += piece.columns;
    text.remove_prefix(piece.bytes.size());
  }
  return columns;
}

std::string fit(std::string_view text, int width) {
  if (width <= 0 || display_width(text) <= width) return std::string{text};
  std::string kept;
  int columns = 0;
  bool cut = false;
  while (!text.empty()) {
    const Piece piece = next_piece(text);
    text.remove_prefix(piece.bytes.size());
    if (piece.bytes[0] == '\x1b') kept += piece.bytes;  // also after the cut: it may switch a colour off
    if (piece.bytes[0] == '\x1b' || cut) continue;
    if (columns + piece.columns > width - 1) {
      kept += "…";
      cut = true;
    } else {
      kept += piece.bytes;
      columns += piece.columns;
    }
  }
  return kept;
}

std::string pad(std::string_view text, int width, bool right_aligned) {
  const std::string spaces(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
  return right_aligned ? spaces + std::string{text} : std::string{text} + spaces;
}

}  // namespace abl::printing
