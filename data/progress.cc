// SPDX-License-Identifier: Apache-2.0
#include "data/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

namespace abl::data {

using namespace std::chrono_literals;

Progress::Progress(std::uint64_t images) : images_{images}, terminal_{isatty(STDERR_FILENO) == 1} {
  if (terminal_) show();
}

Progress::~Progress() {
  if (terminal_) std::cerr << "\r\033[K" << std::flush;
}

void Progress::advance(std::uint64_t images) {
  const std::scoped_lock lock{mutex_};
  done_ += images;
  if (Clock::now() - shown_ >= (terminal_ ? 200ms : 10s)) show();
}

void Progress::show() {
  shown_ = Clock::now();
  const double seconds = std::chrono::duration<double>(shown_ - begun_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_) / seconds : 0;
  const std::string text =
      fmt::format("{}/{} images  {:.0f} images/s  {} left", done_, images_, rate,
                  rate > 0 ? fmt::format("{:.0f} s", static_cast<double>(images_ - done_) / rate) : "?");
  if (!terminal_) {
    std::cerr << text + "\n";
    return;
  }
  constexpr std::uint64_t kWidth = 30;
  const std::uint64_t filled = images_ > 0 ? kWidth * done_ / images_ : kWidth;
  std::string bar;
  for (std::uint64_t i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  std::cerr << fmt::format("\r\033[K{} {}", bar, text) << std::flush;
}

}  // namespace abl::data
