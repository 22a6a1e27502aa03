// SPDX-License-Identifier: Apache-2.0
#include "views/eta.h"

#include <algorithm>
#include <set>

namespace abl::views {

using storage::TrialState;

std::optional<double> trial_eta(const storage::ClaimRecord& claim) {
  if (claim.trial.state != TrialState::kRunning || claim.steps_per_second <= 0 || claim.total_steps == 0)
    return std::nullopt;
  return (claim.total_steps - std::min(claim.step, claim.total_steps)) / claim.steps_per_second;
}

std::optional<double> sweep_eta(const std::vector<storage::ClaimRecord>& claims) {
  double durations = 0, remaining = 0, longest = 0;
  int timed = 0, under_way = 0, untimed = 0;
  std::set<storage::TrialId> seen;  // two rows may share a trial
  for (const auto& claim : claims) {
    if (!seen.insert(claim.trial.id).second) continue;
    if (claim.steps_per_second > 0 && claim.total_steps > 0) {
      durations += claim.total_steps / claim.steps_per_second;
      ++timed;
    }
    const TrialState state = claim.trial.state;
    const auto eta = trial_eta(claim);
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
