// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ablate/v1/compare.pb.h"
#include "storage/database.h"
#include "storage/sweep_store.h"
#include "storage/types.h"

namespace abl::views {

/// One of the two. A sweep has neither `row` nor `run`.
struct ComparedSide {
  ablate::v1::ComparedSide said;
  std::optional<storage::SweepRecord> sweep{};
  std::optional<int> row{};
  std::optional<storage::RunId> run{};
  std::optional<storage::TrialId> trial{};  ///< the first, whose configuration is shown

  bool is_sweep() const { return !row && !run; }
  std::vector<storage::Column> columns(storage::Database& db) const;  ///< none of a run that is in no sweep
};

/// By its name: "SWEEP", "SWEEP/ROW", "SWEEP/ROW/SEED" or a run's number. A row may have a slash in its id.
/// Throws: Error{kNotFound} with the nearest name, kFailedPrecondition for a seed without a run,
/// kInvalidArgument for no name at all.
ComparedSide compared_side(storage::Database& db, const std::string& name);

}  // namespace abl::views
