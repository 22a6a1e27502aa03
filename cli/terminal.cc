// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "cli/format.h"

namespace abl::cli {
namespace {

int first_failure = 0;  // errno of the first write to standard output that failed

using namespace std::chrono_literals;

bool wants_colour(bool interactive) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return interactive && !(no_color && *no_color) && !(term && std::string_view{term} == "dumb");
}

winsize size_of(FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) size.ws_col = 80, size.ws_row = 24;
  return size;
}

}  // namespace

Terminal::Terminal(FILE* stream)
    : stream_{stream}, interactive_{isatty(fileno(stream)) == 1}, colour_{wants_colour(interactive_)} {}

Terminal::Terminal(FILE* stream, bool interactive, bool colour, int width, int height)
    : stream_{stream}, interactive_{interactive}, colour_{colour}, width_{width}, height_{height} {}

int Terminal::width() const {
  if (width_ != 0 || !interactive_) return width_;
  return size_of(stream_).ws_col;
}
int Terminal::height() const {
  if (height_ != 0 || !interactive_) return height_;
  return size_of(stream_).ws_row;
}

void Terminal::line(std::string_view text) const { write(std::string{text} + "\n"); }
void Terminal::write(std::string_view text) const {
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), stream_) == text.size();
  if ((!whole || std::fflush(stream_) != 0) && stream_ == stdout && first_failure == 0) first_failure = errno;
}

int output_failure() { return first_failure != 0 ? first_failure : errno != 0 ? errno : EIO; }

std::string bar(double fraction, int width) {
  const double inside = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const int full = static_cast<int>(std::floor(inside * width + 1e-9));  // full only when it is done
  std::string text;
  for (int column = 0; column < width; ++column) text += column < full ? "█" : "░";
  return text;
}

void Redraw::draw(std::vector<std::string> lines) {
  const auto room = static_cast<std::size_t>(std::max(1, terminal_.height() - 1));
  if (lines.size() > room) {
    const auto hidden = lines.size() - room + 1;
    lines.resize(room - 1);
    lines.push_back(terminal_.paint(Style::kDim, fmt::format("… {} more", plural(hidden, "line"))));
  }
  std::string text = drawn_ ? fmt::format("\x1b[{}A\r", drawn_) : "";
  for (const auto& line : lines) text += fit(line, terminal_.width()) + "\x1b[K\n";
  terminal_.write(text + "\x1b[J");
  drawn_ = lines.size();
}

void Redraw::clear() {
  if (drawn_ > 0) terminal_.write(fmt::format("\x1b[{}A\r\x1b[J", drawn_));
  drawn_ = 0;
}

Progress::Progress(const Terminal& terminal, std::string label, std::string unit, double total)
    : terminal_{terminal}, label_{std::move(label)}, unit_{std::move(unit)}, total_{total} {}

Progress::~Progress() {
  if (shown_ && terminal_.interactive()) terminal_.write("\r\x1b[K");
}

void Progress::update(double done) {
  const auto now = Steady::now();
  if (now - last_ < (terminal_.interactive() ? 100ms : 5000ms)) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count(), rate = done / seconds;
  std::string text = label_;
  if (total_ > 0) {
    const double fraction = std::min(1.0, done / total_);
    text +=
        fmt::format(" {}{:3.0f}%", terminal_.interactive() ? bar(fraction, 24) + " " : "", fraction * 100);
  }
  if (unit_ == "s")  // what is done is to wait
    text += ", " + format_duration(done);
  else
    text += fmt::format("  {} {}  {}", format_count(static_cast<std::uint64_t>(done)), unit_,
                        format_rate(rate, unit_));
  if (total_ > 0)
    text += "  ETA " + format_eta(rate > 0 ? std::optional{(total_ - done) / rate} : std::nullopt);
  if (terminal_.interactive())
    terminal_.write("\r" + fit(text, terminal_.width() - 1) + "\x1b[K");
  else
    terminal_.line(text);
}

}  // namespace abl::cli
