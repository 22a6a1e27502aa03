// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <gtest/gtest.h>

namespace abl {
namespace {

TEST(Printable, WhatPeopleWriteStays) {
  const std::string text = "Größe ± 0.12 → 中文 \U0001F600\ttab\nline";
  EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapeSequencesAreLeftOutWhole) {
  EXPECT_EQ(printable("a\x1b[31mred\x1b[0m b"), "ared b");
  EXPECT_EQ(printable("\x1b]0;title\x07x\x1b]8;;http://e\x1b\\link\x1bP1;2q..\x1b\\y"), "xlinky");
  EXPECT_EQ(printable("\x1b(Bx\x1b"
                      "cy\u009b2Jz"),
            "xyz");
  EXPECT_EQ(printable("\x1b[2J\x1b[1;1Hx\x1b"), "x");
}

TEST(Printable, ASequenceThatNeverEndsHidesItsLineAlone) {
  EXPECT_EQ(printable("a\x1b]0;hidden\nb\x1b[12\nc"), "a\nb\nc");
}

TEST(Printable, ControlsAndWhatTurnsTheDirectionAreLeftOut) {
  EXPECT_EQ(printable("a\x07\x08\x7f\u0085z"), "az");
  EXPECT_EQ(printable("x\u202e\u2066txt\u200f.exe\u2028"), "xtxt.exe");
  EXPECT_EQ(printable("caf\xe9 \x9b"
                      "31m"),
            "caf\uFFFD \uFFFD31m")
      << "a byte is no control of eight bits";
}

TEST(Printable, AProgressBarIsALineForEachTime) {
  EXPECT_EQ(printable("10%\r20%\r\ndone\r\r\n"), "10%\n20%\ndone\n");
}

TEST(Printable, ALineIsOne) { EXPECT_EQ(printable_line("a\x1b[31m\nb\tc\rd"), "a b c d"); }

TEST(Printable, PiecesAreCutAnywhere) {
  const std::string text = "Größe \x1b[1;31mred\x1b[0m\r\n\x1b]0;t\x1b\\中\U0001F600\n";
  PrintableStream stream;
  std::string shown;
  for (const char byte : text) shown += stream.next(std::string_view{&byte, 1});
  EXPECT_EQ(shown, printable(text));
  EXPECT_EQ(shown, "Größe red\n中\U0001F600\n");
}

}  // namespace
}  // namespace abl
