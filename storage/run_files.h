// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// A trial by what its runs have left on disks.
struct TrialFiles {
  struct Run {
    RunId id = 0;
    int attempt = 0;
    RunState state = RunState::kLeased;
    std::string host, directory;                                     ///< empty: its program never started
    std::vector<std::pair<std::uint32_t, std::string>> checkpoints;  ///< step and path, as reported
  };
  TrialId id = 0;
  TrialState state = TrialState::kQueued;
  bool shown = false;     ///< a sweep claims it, or may have it back
  bool needed = false;    ///< a trial that a sweep wants and that is not completed takes its weights
  std::vector<Run> runs;  ///< by attempt
};

/// Every trial that has had a run, by number.
void each_trial_with_files(Database& db, const std::function<void(TrialFiles)>& take);

}  // namespace abl::storage
