// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Columns that count the trials `t` of claims `st` by state, as their sweep sees them.
inline const std::string kCountTrials = R"sql(
    COUNT(*) FILTER (WHERE t.state = 'queued' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'leased' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'running' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'completed'), COUNT(*) FILTER (WHERE t.state = 'failed'),
    COUNT(*) FILTER (WHERE t.state = 'held' AND NOT st.withdrawn),
    COUNT(*) FILTER (WHERE t.state = 'cancelled' OR (st.withdrawn AND t.state IN ('queued', 'leased', 'running', 'held'))),
    COUNT(*) FILTER (WHERE t.state = 'completed' AND st.unfilled > 0))sql";

/// What these columns hold, from `first` on.
inline TrialCounts read_counts(const Statement& row, int first) {
  const auto n = [&](int column) { return static_cast<std::uint32_t>(row.integer(first + column)); };
  return {.queued = n(0),
          .leased = n(1),
          .running = n(2),
          .completed = n(3),
          .failed = n(4),
          .held = n(5),
          .cancelled = n(6),
          .unfilled = n(7)};
}

}  // namespace abl::storage
