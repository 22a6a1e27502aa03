// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "cli/grid.h"

namespace abl::cli {
namespace {

/// A stream whose text can be read back.
class Captured {
 public:
  ~Captured() { std::fclose(stream_); }
  FILE* stream() { return stream_; }
  std::string text() {
    std::rewind(stream_);
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), stream_));
    return text;
  }

 private:
  FILE* stream_ = std::tmpfile();
};

TEST(Terminal, AFileTakesNoColourAndHasNoWidth) {
  Captured file;
  const Terminal terminal{file.stream()};
  EXPECT_FALSE(terminal.interactive());
  EXPECT_EQ(terminal.width(), 0);
  EXPECT_EQ(terminal.paint(Style::kRed, "failed"), "failed");
}

TEST(Terminal, WidthCountsCharactersAndNotEscapeSequencesOrBytes) {
  EXPECT_EQ(display_width("79.79 ± 0.12"), 12);
  EXPECT_EQ(display_width("\x1b[31mfailed\x1b[0m"), 6);
}

TEST(Terminal, FitCutsAtColumnsAndClosesColours) {
  EXPECT_EQ(fit("0123456789", 10), "0123456789");
  EXPECT_EQ(fit("0123456789", 5), "0123…");
  EXPECT_EQ(fit("\x1b[31m0123456789\x1b[0m", 5), "\x1b[31m0123…\x1b[0m");
  EXPECT_EQ(fit("anything", 0), "anything") << "0 is no limit";
}

TEST(Terminal, ABarIsFullOnlyWhenAllIsDone) {
  EXPECT_EQ(bar(0, 4), "░░░░");
  EXPECT_EQ(bar(0.5, 4), "██░░");
  EXPECT_EQ(bar(0.999, 4), "███░");
  EXPECT_EQ(bar(1, 4), "████");
}

TEST(Terminal, RedrawGoesBackOverWhatItDrewAndStaysInTheWindow) {
  Captured file;
  const Terminal terminal{file.stream(), true, false, 10, 4};
  Redraw redraw{terminal};
  redraw.draw({"one", "a line that is too long"});
  redraw.draw({"1", "2", "3", "4", "5"});
  EXPECT_EQ(file.text(),
            "one\x1b[K\na line th…\x1b[K\n\x1b[J"
            "\x1b[2A\r1\x1b[K\n2\x1b[K\n… 3 lines…\x1b[K\n\x1b[J");
}

TEST(Grid, AlignsColumnsUnderTheirGroup) {
  Grid grid{{{"row"}, {"n", true}, {"a", true, "paper"}, {"b", true, "paper"}}};
  grid.add({"x", "10", "1", "2"});
  EXPECT_EQ(grid.text(),
            "         paper\n"
            "row   n  a   b\n"
            "x    10  1   2\n");
}

TEST(Grid, ARowIsOneLineWhateverItsHeadingsHave) {
  Grid grid{{{"acc\nof\tall"}}};
  grid.add({"a\nb"});
  grid.add_heading("group\n1");
  grid.add({"c"});
  EXPECT_THAT(grid.lines(), testing::SizeIs(4));
}

TEST(Grid, GoesOnBelowInTheSameColumns) {
  Grid grid{{{"row"}, {"n", true}}};
  grid.add({"a long name", "1"});
  EXPECT_EQ(grid.take_text(),
            "row          n\n"
            "a long name  1\n");
  EXPECT_EQ(grid.take_text(), "");
  grid.add({"x", "2"});
  EXPECT_EQ(grid.take_text(), "x            2\n");
}

}  // namespace
}  // namespace abl::cli
