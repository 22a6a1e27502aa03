// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace abl::training {

/// What some steps of a training do, operator by operator, by PyTorch's profiler: written as a trace that
/// chrome://tracing, Perfetto and TensorBoard's plugin open. The first steps are left out, unless there are
/// no others: they are slower than all that follow. Nothing that is computed changes. Thread: the one that
/// takes the steps.
class StepProfile {
 public:
  static constexpr std::int64_t kFirst = 4,
                                kSteps = 5;  ///< the steps that it sees of a long training, from 1

  /// Writes nothing where `file` is empty. Throws: Error where it cannot be written.
  StepProfile(std::filesystem::path file, torch::Device device);
  ~StepProfile();
  StepProfile(const StepProfile&) = delete;
  StepProfile& operator=(const StepProfile&) = delete;

  /// How many steps there will be. Before the first one.
  void expect(std::int64_t steps) { first_ = std::clamp<std::int64_t>(steps - kSteps + 1, 1, kFirst); }
  /// Before and after each step.
  void begin_step();
  /// Returns: whether the file has been written by that.
  bool end_step();
  /// Writes what was seen where a training ends before all steps are. Returns: whether it did.
  bool finish();
  const std::filesystem::path& file() const { return file_; }
  /// How many steps it has seen.
  std::int64_t steps() const { return std::clamp<std::int64_t>(step_ - first_ + 1, 0, kSteps); }

 private:
  const std::filesystem::path file_;
  const torch::Device device_;
  std::int64_t first_ = kFirst, step_ = 0;
  bool is_recording_ = false;
};

}  // namespace abl::training
