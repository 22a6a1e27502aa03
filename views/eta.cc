// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <algorithm>
#include <set>

namespace abl::views {

using storage::TrialState;

std::optional<double> trial_eta(const storage::Pace& pace) {
  if (pace.state != TrialState::kRunning || pace.steps_per_second <= 0 || pace.total_steps == 0)
    return std::nullopt;
  return (pace.total_steps - std::min(pace.step, pace.total_steps)) / pace.steps_per_second;
}

std::optional<double> sweep_eta(const std::vector<storage::Pace>& paces, std::uint32_t others) {
  double durations = 0, remaining = 0, longest = 0;
  int timed = 0, under_way = 0;
  std::uint32_t untimed = others;
  std::set<storage::TrialId> seen;  // two rows may share a trial
  for (const auto& pace : paces) {
    if (!seen.insert(pace.trial).second) continue;
    if (pace.steps_per_second > 0 && pace.total_steps > 0) {
      durations += pace.total_steps / pace.steps_per_second;
      ++timed;
    }
    const TrialState state = pace.state;
    const auto eta = trial_eta(pace);
    if (state == TrialState::kRunning || state == TrialState::kLeased) ++under_way;
    if (eta) {
      remaining += *eta;
      longest = std::max(longest, *eta);
    } else if (state == TrialState::kQueued || state == TrialState::kLeased ||
               state == TrialState::kRunning) {
      ++untimed;
    }
  }
  if (timed == 0 || under_way == 0) return std::nullopt;
  const double typical = durations / timed;
  if (untimed > 0) longest = std::max(longest, typical);
  return std::max(longest, (remaining + untimed * typical) / under_way);
}

}  // namespace abl::views
