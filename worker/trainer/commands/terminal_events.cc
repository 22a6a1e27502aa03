// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/commands/terminal_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "config/tasks.h"
#include "protocol/checkpoint_files.h"
#include "protocol/metrics.h"

namespace abl::commands {

namespace metric = protocol::metric;

void TerminalEvents::start(const Start& start) {
  const std::scoped_lock lock{mutex_};
  images_per_step_ = start.images_per_step;
  total_ = start.total_steps, first_ = step_ = start.resumed_step.value_or(0);
  begun_ = std::chrono::steady_clock::now();
  std::cout << fmt::format("{} steps on {}, data {}{}\n", total_, start.environment.value("device", "?"),
                           start.data_fingerprint,
                           start.resumed_step ? fmt::format(", resumed at step {}", first_) : "");
  draw();
}

void TerminalEvents::metric(std::int64_t step, const std::map<std::string, double>& values) {
  const std::scoped_lock lock{mutex_};
  step_ = step;
  if (const auto loss = values.find(metric::kTrainLoss); loss != values.end())
    loss_ = loss->second, images_per_s_ = values.at(metric::kImagesPerSecond);
  for (const std::string split : {metric::kVal, metric::kAverage})
    for (const auto& task : config::tasks()) {
      const std::string judged = metric::of(split, task.metrics.front());
      const auto value = values.find(judged);
      if (value == values.end()) continue;
      const auto loss = values.find(metric::of(split, metric::kLoss));
      std::cout << fmt::format(
          "\r\033[Kstep {:>7}  {} {:6.2f} %{}\n", step, judged, value->second,
          loss == values.end() ? "" : fmt::format("  {}/loss {:.4f}", split, loss->second));
      if (split == metric::kVal && (!best_ || value->second > best_->value))
        best_ = {.metric = judged, .step = step, .value = value->second};
    }
  draw();
}

void TerminalEvents::log(LogLevel level, const std::string& text) {
  const std::scoped_lock lock{mutex_};
  std::cout << fmt::format("\r\033[K{}: {}\n", name_of(level), text);
}

void TerminalEvents::checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string&) {
  const std::scoped_lock lock{mutex_};
  newest_ = path, step_ = std::max(step_, step);
}

void TerminalEvents::probe(std::int64_t, const std::filesystem::path& file) {
  const std::scoped_lock lock{mutex_};
  std::cout << fmt::format("\r\033[Kfound: {}\n", file.string());
}

void TerminalEvents::end(Status status, const std::string& reason, bool) {
  const std::scoped_lock lock{mutex_};
  std::cout << fmt::format("\r\033[K{} after {} of {} steps{}\n", name_of(status), step_, total_,
                           reason.empty() ? "" : ": " + reason);
  if (best_)
    std::cout << fmt::format("  best {} {:.2f} %, step {}\n", best_->metric, best_->value, best_->step);
  if (step_ > first_) {
    const double seconds = seconds_since_start();
    const auto images = static_cast<double>((step_ - first_) * images_per_step_);
    std::cout << fmt::format("  {:.0f} s, {:.0f} images/s with evaluations and checkpoints\n", seconds,
                             images / std::max(1e-9, seconds));
  }
  if (!newest_.empty()) {
    std::cout << fmt::format("  newest checkpoint {}\n", newest_.string());
    if (const auto best = newest_.parent_path() / protocol::kBestCheckpoint; std::filesystem::exists(best))
      std::cout << fmt::format("  best checkpoint {}\n", best.string());
  }
  std::cout << std::flush;
}

double TerminalEvents::seconds_since_start() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
}

void TerminalEvents::draw() {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * step_ / std::max<std::int64_t>(1, total_));
  const bool knows_rate = step_ > first_;
  const double left = knows_rate ? seconds_since_start() / static_cast<double>(step_ - first_) *
                                       static_cast<double>(total_ - step_)
                                 : 0;
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : "─";
  std::cout << fmt::format("\r\033[K{} {}/{}", bar, step_, total_);
  if (knows_rate)
    std::cout << fmt::format("  loss {:.3f}  {:.0f} images/s  {:.0f} s left", loss_, images_per_s_, left);
  std::cout << std::flush;
}

}  // namespace abl::commands
