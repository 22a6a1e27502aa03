// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/column.h"
#include "statistics/sequential.h"
#include "storage/database.h"
#include "storage/table.h"
#include "storage/types.h"
#include "sweeps/sweep_spec.h"
#include "views/compared.h"

/// Seeds that rows get until enough is known of them: `seeds: {min, max, until}`.
///
/// Results are looked at after `min` seeds and after each further one (views::Looks), so what is decided by
/// is computed for so many looks (statistics/sequential.h): all looks together call equal rows different in 5
/// % at most, and all intervals of a row hold its mean in 95 %. Which looks there are, and how many
/// comparisons are corrected for, was fixed with the file: what was decided stays so whatever follows.
///
/// Each row that is open has one seed that waits or is trained, and gets the next when that has ended. Of
/// those that wait the first is the one that is needed most: of the row whose interval is widest, or whose
/// comparison is closest to being decided; a baseline's before those, for comparisons wait for it.
namespace abl::scheduler {

/// How the error is spent over the looks: about the same at each, for most rows stop at an early one.
inline constexpr statistics::Spending kSpending = statistics::Spending::kPocock;

/// What rows are judged by.
struct SeedJudge {
  SeedJudge(const sweeps::SeedRule& rule, const protocol::Compare& compare, std::vector<std::int64_t> order);
  sweeps::SeedRule rule;
  protocol::Compare compare;
  std::vector<std::int64_t> order;  ///< all the seeds that a row may get
  views::Looks looks;
};
/// A row as far as it is known.
struct SeededRow {
  /// `seeds`: of the column that the rule looks at.
  SeededRow(std::string id, const std::vector<storage::SeedCell>& seeds);
  std::string id;
  views::Sample sample;                         ///< as its cell has it
  std::uint32_t claimed = 0;                    ///< seeds that it has, the first ones
  std::vector<std::int64_t> without;            ///< that have ended without a value
  std::map<std::int64_t, std::int64_t> curves;  ///< digests by seed, of those with a value
  std::string stop;  ///< why it can get no more for now: "seed 1 is held"; or empty
};
/// What becomes of it.
struct SeedDecision {
  std::uint32_t seeds = 0;  ///< that it is to have, and its baseline; 0: those that it has
  bool open = true;         ///< it may get more
  double turn = 1;          ///< of the next: the less the sooner
  std::string why;          ///< empty: nothing was decided yet
  bool operator==(const SeedDecision&) const = default;
};

/// By its interval.
SeedDecision decide(const SeedJudge& judge, const SeededRow& row);

/// A comparison as far as it was looked at.
struct SeedLook {
  std::optional<double> p;   ///< of all looks until now, by itself
  std::uint32_t looked = 0;  ///< seeds that the last was of
};
SeedLook look(const SeedJudge& judge, const SeededRow& row, const SeededRow& baseline);
/// By its comparison. `below`: what p has to be below with the correction that the table asks for; nothing:
/// it is.
SeedDecision decide(const SeedJudge& judge, const SeededRow& row, const SeededRow& baseline,
                    const SeedLook& look, std::optional<double> below);

/// Looks at every row of a sweep, gives those that need it a seed, and notes why. Nothing for a sweep without
/// a rule, or a cancelled one. For what changes a whole sweep: it costs its rows, times their seeds.
void grow_seeds(storage::Database& db, storage::SweepId sweep, Time now);
/// The same for the rows of any sweep of which a seed has ended since, however it did: the store has them
/// noted (`growth_due`). An end costs the seeds of its rows and of those that they are compared with; that of
/// a baseline's seed is a look at all that are compared with it, which is done in pieces. Returns: whether
/// more is to be looked at.
bool grow_due(storage::Database& db, Time now);

}  // namespace abl::scheduler
