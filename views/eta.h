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
  };
  std::vector<Kind> waiting;
  std::vector<double> running;  ///< seconds that those which run still take
  bool known = true;  ///< false: how long its trials take is not known, and it keeps its share of the slots
  int slots_each = 1;
  double places = 1;  ///< trials of it that run at once where it has all workers for itself
  int priority = 0;
  std::string owner;
  double weight = 1;
};

/// When a sweep's last trial ends.
struct Completion {
  std::optional<double> seconds;  ///< from now on; nothing where that depends on what is not known
  double at_once = 0;             ///< trials of it that run at once until then, on the average
};

/// Of sweeps that share `slots` as the scheduler shares them: the highest priority first, then by owners,
/// then by the weight of an owner's sweeps; what one does not need the others get, and so does what it has
/// when it is complete.
std::vector<Completion> completions(const std::vector<Remaining>& sweeps, double slots);

/// Seconds in which what is left of a sweep is done, so many trials at once, one after the other as places
/// become free.
double makespan(const Remaining& sweep, double at_once);

}  // namespace abl::views
