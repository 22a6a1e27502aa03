// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ablate/v1/access.pb.h"
#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "cli/terminal.h"

/// States as words, and the sentences about sweeps that several commands print.
namespace abl::cli {

/// "running".
std::string word(ablate::v1::SweepState state);
std::string word(ablate::v1::TrialState state);
std::string word(ablate::v1::RunState state);
std::string word(ablate::v1::FailureClass failure);
std::string role_text(ablate::v1::TokenRole role);
/// The same in the state's colour, where the terminal takes colours.
std::string painted(ablate::v1::SweepState state, const Terminal& terminal);
std::string painted(ablate::v1::TrialState state, const Terminal& terminal);

/// "5/12 trials, 2 running, 1 failed": what is not zero.
std::string counts_text(const ablate::v1::TrialCounts& counts);
/// "msf-sharing: active, 5/12 trials, 2 running".
/// "tuning: 12 of 64, 3 of 18 rows tuned"; empty where no row is tuned.
std::string tuning_text(const ablate::v1::SweepSummary& sweep);
std::string summary_text(const ablate::v1::SweepSummary& sweep, const Terminal& terminal);
/// "held: all cells with groups=8 fail: … (3 of 3) ('ablate retry …", a line for each.
std::vector<std::string> holds_of(const ablate::v1::SweepSummary& sweep);
/// True when nothing waits or runs any more.
bool is_finished(ablate::v1::SweepState state);

}  // namespace abl::cli
