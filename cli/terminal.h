// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "printing/medium.h"

namespace abl::cli {

using printing::display_width;
using printing::fit;
using printing::pad;
using printing::Style;

/// An output stream as seen by people: how wide, whether it can be redrawn, whether it takes colours.
/// Colours are off when the stream is no terminal, when NO_COLOR is set and not empty, or when TERM is
/// "dumb".
class Terminal final : public printing::Medium {
 public:
  explicit Terminal(FILE* stream);
  /// With properties given; for tests.
  Terminal(FILE* stream, bool interactive, bool colour, int width, int height);

  bool interactive() const { return interactive_; }
  bool colour() const override { return colour_; }
  int width() const override;               ///< columns; 0 when it is no terminal: no limit
  int height() const;                       ///< rows; 0 when it is no terminal
  void line(std::string_view text) const;   ///< writes it with a newline, and flushes
  void write(std::string_view text) const;  ///< writes it as it is, and flushes

 private:
  FILE* stream_;
  bool interactive_, colour_;
  int width_ = 0, height_ = 0;  // 0: ask the terminal each time, since people resize windows
};

/// "█████░░░░░", `width` columns.
std::string bar(double fraction, int width);

/// A block of lines that is drawn over itself. Lines are cut to the terminal's width and the block to its
/// height.
class Redraw {
 public:
  explicit Redraw(const Terminal& terminal) : terminal_{terminal} {}
  void draw(std::vector<std::string> lines);
  /// Takes it away: what is written next takes its place.
  void clear();

 private:
  const Terminal& terminal_;
  std::size_t drawn_ = 0;
};

/// errno of what could not be written to standard output, where something could not.
int output_failure();

/// Progress of one long operation: a bar with rate and ETA on a terminal (ten times a second at most),
/// otherwise a plain line every few seconds. Thread: one.
class Progress {
 public:
  /// `total` 0: unknown, then only count and rate are shown; of the unit "s", how long it has taken.
  Progress(const Terminal& terminal, std::string label, std::string unit, double total);
  ~Progress();  ///< removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(double done);

 private:
  using Steady = std::chrono::steady_clock;
  const Terminal& terminal_;
  std::string label_, unit_;
  double total_;
  Steady::time_point start_ = Steady::now(), last_ = start_;
  bool shown_ = false;
};

}  // namespace abl::cli
