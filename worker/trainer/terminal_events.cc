// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/terminal_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace abl::trainer {

void TerminalEvents::start(const Start& start) {
  total_ = start.total_steps, first_ = step_ = start.resumed_step.value_or(0);
  begun_ = std::chrono::steady_clock::now();
  std::cout << fmt::format("{} steps on {}, data {}{}\n", total_, start.environment.value("device", "?"),
                           start.data_fingerprint,
                           start.resumed_step ? fmt::format(", resumed at step {}", first_) : "");
  draw();
}

void TerminalEvents::metric(std::int64_t step, const std::map<std::string, double>& values) {
  step_ = step;
  if (const auto loss = values.find("train/loss"); loss != values.end())
    loss_ = loss->second, images_per_s_ = values.at("images_per_s");
  if (const auto top1 = values.find("val/top1"); top1 != values.end())
    std::cout << fmt::format("\r\033[Kstep {:>7}  val/top1 {:6.2f} %  val/loss {:.4f}\n", step, top1->second,
                             values.at("val/loss"));
  draw();
}

void TerminalEvents::log(const std::string& level, const std::string& text) {
  std::cout << fmt::format("\r\033[K{}: {}\n", level, text);
}

void TerminalEvents::checkpoint(std::int64_t, const std::filesystem::path&, const std::string&) {}

void TerminalEvents::end(const std::string& status, const std::string& reason, bool) {
  std::cout << fmt::format("\r\033[K{}{}\n", status, reason.empty() ? "" : ": " + reason) << std::flush;
}

void TerminalEvents::draw() {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * step_ / std::max<std::int64_t>(1, total_));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  const double left =
      step_ > first_ ? seconds / static_cast<double>(step_ - first_) * static_cast<double>(total_ - step_)
                     : 0;
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  std::cout << fmt::format("\r\033[K{} {}/{}  loss {:.3f}  {:.0f} images/s  {:.0f} s left", bar, step_,
                           total_, loss_, images_per_s_, left)
            << std::flush;
}

}  // namespace abl::trainer
