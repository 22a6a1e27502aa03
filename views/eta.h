// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/types.h"

namespace abl::views {

/// Seconds until a running trial ends, from its own rate; nothing while the rate or the length is unknown.
std::optional<double> trial_eta(const storage::Pace& pace);

/// What is left of a sweep, and how it stands among others.
struct Remaining {
  /// Trials that wait and take as long as each other.
  struct Kind {
    double trials = 0, seconds = 0;
    std::string row{};                 ///< what `after` of others names, or empty
    std::vector<std::string> after{};  ///< rows whose trials each of these waits for, one for one
    double ready = 0;                  ///< seconds until those of these that run now have ended
  };
  std::vector<Kind> waiting;
  /// Seconds that those which run still take, less than 0 where nobody knows: until then they hold their
  /// slots.
  std::vector<double> running;
  std::size_t counted = 0;  ///< so many of these, the last, hold slots that are counted for another sweep
  bool known = true;  ///< false: how long its trials take is not known, and it keeps its share of the slots
  int slots_each = 1;
  double places = 1;  ///< trials of it that run at once where it has all workers for itself
  int priority = 0;
  std::string owner;
  double weight = 1;
  bool preempts = false;  ///< runs of lower priority give way to its trials, where these
  bool resumable = true;  ///< continue later
};

/// When a sweep's last trial ends.
struct Completion {
  std::optional<double> seconds;  ///< from now on; nothing where that depends on what is not known
  double at_once = 0;  ///< trials of it that run at once, on the average, while some wait and it has slots
};

/// Of sweeps that share `slots` as the scheduler shares them: what runs keeps its slots until it ends, but
/// where it gives way to a sweep that preempts; what is free goes to the highest priority first, then by
/// owners, then by the weight of an owner's sweeps; what one does not need the others get, and so does what
/// it has when it is complete.
std::vector<Completion> completions(const std::vector<Remaining>& sweeps, double slots);

/// Seconds in which what is left of a sweep is done, so many trials at once, one after the other as places
/// become free.
double makespan(const Remaining& sweep, double at_once);

}  // namespace abl::views
