// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace abl::data {

/// How far a long piece of work is, on stderr: a bar with rate and time left on a terminal, otherwise a line
/// every ten seconds. Thread: `advance` from any.
class Progress {
 public:
  explicit Progress(std::uint64_t images);
  /// Ends the bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void advance(std::uint64_t images = 1);

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  const std::uint64_t images_;
  const bool terminal_;
  const Clock::time_point begun_ = Clock::now();
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  Clock::time_point shown_ = begun_;
};

}  // namespace abl::data
