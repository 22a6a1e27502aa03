// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "protocol/events.h"

namespace abl::commands {

/// The same for a person at a terminal: a bar with rate and time left, and a line for each evaluation.
class TerminalEvents final : public protocol::Events {
 public:
  void start(const Start& start) override;
  void metric(std::int64_t step, const std::map<std::string, double>& values) override;
  void log(LogLevel level, const std::string& text) override;
  void checkpoint(std::int64_t step, const std::filesystem::path& path, const std::string& sha256) override;
  void probe(std::int64_t step, const std::filesystem::path& file) override;
  void end(Status status, const std::string& reason, bool retryable) override;

 private:
  double seconds_since_start() const;
  void draw();
  std::mutex mutex_;
  std::int64_t first_ = 0, step_ = 0, total_ = 0, images_per_step_ = 0;
  double loss_ = 0, images_per_s_ = 0;
  struct Best {
    std::string metric;
    std::int64_t step = 0;
    double value = 0;
  };
  std::optional<Best> best_;
  std::filesystem::path newest_;  ///< checkpoint
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace abl::commands
