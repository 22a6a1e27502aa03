// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"
#include "views/table_cache.h"
#include "webhooks/happening.h"

namespace abl::webhooks {

/// How far a webhook was told of a store: what outlives the program, and all that has to.
struct Told {
  std::int64_t upto = 0;   ///< the newest step of a trial (table `transition`) that was looked at
  std::int64_t until = 0;  ///< a round was begun that looks at steps up to this one; 0: none was
  Time since{};            ///< when the webhook began: what was significant before is nothing new
  std::map<storage::SweepId, std::string> complete;  ///< with what it was complete when that was told
  /// Cells that were told of, "row/column"; a cell is told of once, however often it changes its mind.
  std::map<storage::SweepId, std::set<std::string>> cells;
};

/// Takes away what is of sweeps that are no longer there.
void forget_removed(storage::Database& db, Told& told);

/// The start of a webhook that has told nothing yet: of this store as it is, nothing is news.
Told told_nothing(storage::Database& db, Time now);

struct Round {
  std::vector<Happening> happenings;
  Told told;              ///< once they are all told; where there was no step `upto` alone, as it was
  bool more = false;      ///< there are steps that this round did not look at
  std::int64_t lost = 0;  ///< steps that the store has forgotten, and that were not looked at
};

inline constexpr int kStepsARound = 1000;
inline constexpr std::size_t kNamed = 20;  ///< trials or cells of one message; of others it has the count
inline constexpr std::size_t kMostCells = 20'000;  ///< of one sweep, told of or to be told of

/// Looks at what became of trials since `told`, and at the tables of sweeps in which one ended, for what
/// this webhook wants. One happening a sweep and event, however many trials or cells it is of. Reads at most
/// kStepsARound steps, and the tables that they concern.
Round look(storage::Database& db, views::TableCache& tables, const Webhook& webhook, const Told& told);

}  // namespace abl::webhooks
