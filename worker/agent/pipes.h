// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "worker/agent/trainer_output.h"

namespace abl::agent {

/// Between two looks at the clock, and at a child whose end cannot be waited for.
inline constexpr std::chrono::milliseconds kLook{50};

/// The reading ends of a program's stdout and stderr, and the writing ends until it is started. Thread: one.
class Pipes {
 public:
  /// Throws: Error where there is no descriptor.
  Pipes();
  ~Pipes() { close_all(); }
  Pipes(const Pipes&) = delete;
  Pipes& operator=(const Pipes&) = delete;

  int child_out() const { return child_out_; }
  int child_err() const { return child_err_; }
  void child_has_started();

  /// Waits until something comes, or the program ends, or `wake` is raised, or it is time for a look; reads
  /// at most one buffer of each pipe, or nothing where it has to wait.
  /// Returns: whether anything came.
  bool read(TrainerOutput& output, int wake, int program_end, bool has_to_wait);
  /// Returns: whether anything came.
  bool read_some(TrainerOutput& output);

 private:
  static void close_end(int& end);
  void close_all();
  std::string_view read_end(int& end);

  int out_ = -1, err_ = -1, child_out_ = -1, child_err_ = -1;
  std::array<char, 65536> buffer_;
};

}  // namespace abl::agent
