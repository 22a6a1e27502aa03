// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

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

}  // namespace
}  // namespace abl::cli
