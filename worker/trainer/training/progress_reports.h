// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "protocol/events.h"

namespace abl::training {

/// The points that training says of itself. Its rate is that of a clock on the wall: everything is in it.
/// What a GPU has not computed yet is not waited for: a point is said when its step is done, some steps after
/// it was taken.
class ProgressReports {
 public:
  using Clock = std::chrono::steady_clock;
  /// `skips_steps`: whether steps may be left out, so that their number is of interest.
  ProgressReports(protocol::Events& events, torch::Device device, bool skips_steps = false);

  /// Time counts from here. `recognises`: correct answers are of interest.
  void begin(bool recognises = true) { since_ = Clock::now(), recognises_ = recognises; }
  /// A step of so many images was taken.
  void count(std::int64_t images) { images_ += images; }
  /// What kept the training from taking steps: images that were not ready, a checkpoint, an evaluation.
  enum class Spent { kData, kCheckpoints, kEvaluation };
  void spend(Spent on, Clock::duration time) { spent_.at(static_cast<std::size_t>(on)) += time; }
  /// A point at `step`; `sums`: loss, correct answers and images since the last one, at step `from`, and of
  /// each rank `Learner::finite_steps`, [3 + ranks], on the device; `gradients`: `Learner::gradients_sum`.
  void add(std::int64_t step, std::int64_t from, const torch::Tensor& sums, const torch::Tensor& gradients,
           double lr);
  /// Says the points up to a step that is done. Several share the time since the one before them by their
  /// images: nobody knows when the device was done with each. Throws: Error{kAborted} where the loss is not
  /// finite, naming the first step of which that is so.
  void say(std::int64_t done);
  /// Waits for all steps that were taken, and says all points.
  void say_all();

 private:
  struct Point {
    std::int64_t step, from, images;  ///< taken since the point before, at `from`
    torch::Tensor sums, gradients;    ///< [3 + ranks] and [3], on the host, once the step is done
    double lr;
  };
  torch::Tensor on_host(const torch::Tensor& values) const;
  /// `values`: those of the time, to which it adds the point's own.
  void say(const Point& point, std::map<std::string, double> values) const;

  protocol::Events& events_;
  const torch::Device device_;
  const bool skips_steps_;
  bool recognises_ = true;
  Clock::time_point since_;                 ///< when the newest point was said
  std::array<Clock::duration, 3> spent_{};  ///< since then, by what it was spent on
  std::int64_t images_ = 0;                 ///< since the newest point
  std::deque<Point> points_;
};

}  // namespace abl::training
