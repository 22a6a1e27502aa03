// SPDX-License-Identifier: Apache-2.0
#include "storage/types.h"

#include <array>
#include <span>

#include "base/error.h"

namespace abl::storage {
namespace {

constexpr std::array<std::string_view, 7> kTrialStates{"queued", "leased", "running",  "completed",
                                                       "failed", "held",   "cancelled"};
constexpr std::array<std::string_view, 6> kRunStates{"leased", "running", "completed",
                                                     "failed", "stopped", "lost"};
constexpr std::array<std::string_view, 3> kSweepStates{"active", "paused", "cancelled"};

/// The enumerator of `text`: its position among `words`.
template <class State>
State state_of(std::string_view text, std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == text) return static_cast<State>(i);
  throw Error{Code::kDataLoss, "unknown state '" + std::string{text} + "'"};
}

}  // namespace

std::string_view to_text(TrialState state) { return kTrialStates.at(static_cast<std::size_t>(state)); }
std::string_view to_text(RunState state) { return kRunStates.at(static_cast<std::size_t>(state)); }
std::string_view to_text(SweepState state) { return kSweepStates.at(static_cast<std::size_t>(state)); }
TrialState trial_state(std::string_view text) { return state_of<TrialState>(text, kTrialStates); }
RunState run_state(std::string_view text) { return state_of<RunState>(text, kRunStates); }
SweepState sweep_state(std::string_view text) { return state_of<SweepState>(text, kSweepStates); }

}  // namespace abl::storage
