// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/printable.h"
#include "base/utf8.h"
#include "printing/grid.h"
#include "tests/fuzz/target.h"

namespace abl::fuzz {
namespace {

/// What a terminal acts on in place of showing it: C0 but line ends and tabs, DEL, C1, and what turns the
/// direction of reading.
bool is_harmless(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](std::size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
    };
    if ((at(0) < 0x20 && text[i] != '\n' && text[i] != '\t') || at(0) == 0x7f) return false;
    if (at(0) == 0xc2 && at(1) < 0xa0 && at(1) >= 0x80) return false;
    if (at(0) == 0xe2 && at(1) == 0x80 &&
        ((at(2) >= 0xaa && at(2) <= 0xae) || at(2) == 0x8e || at(2) == 0x8f))
      return false;
    if (at(0) == 0xe2 && at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9) return false;
  }
  return true;
}

}  // namespace

/// Names, labels and reasons that somebody else wrote, on the way to a terminal.
void read_labels(std::string_view bytes) {
  const std::string shown = printable(bytes);
  require(is_harmless(shown), "what is shown does nothing to a terminal");
  require(printable(shown) == shown, "what is printable stays as it is");
  PrintableStream stream;
  std::string pieces;
  for (std::size_t at = 0; at < bytes.size(); at += 3) pieces += stream.next(bytes.substr(at, 3));
  require(shown.starts_with(pieces.substr(0, std::min(pieces.size(), shown.size()))) ||
              pieces.starts_with(shown.substr(0, std::min(pieces.size(), shown.size()))),
          "pieces are shown as the whole");
  printing::Grid grid{{{.heading = shown}, {.heading = "acc", .right_aligned = true, .least = 3, .rank = 1}}};
  grid.add({shown, "1"});
  grid.add({"b", shown});
  for (const int width : {0, 20, 5}) {
    grid.fit_to(width);
    for (const std::string& line : grid.lines())
      require(is_harmless(line) && line.find('\n') == std::string::npos, "a row is one line");
  }
}

}  // namespace abl::fuzz
