// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/column.h"
#include "statistics/sequential.h"
#include "storage/database.h"
#include "storage/types.h"
#include "sweeps/sweep_spec.h"

/// Seeds that rows get until enough is known of them: `seeds: {min, max, until}`.
///
/// Results are looked at after `min` seeds and after each further one, so what is decided by is computed for
/// so many looks (statistics/sequential.h): all looks together call equal rows different in 5 % at most, and
/// all intervals of a row hold its mean in 95 %. Which looks there are was fixed with the file.
namespace abl::scheduler {

/// How the error is spent over the looks: about the same at each, for most rows stop at an early one.
inline constexpr statistics::Spending kSpending = statistics::Spending::kPocock;

/// A row as far as it is known.
struct SeededRow {
  std::string id;
  std::string baseline;        ///< id of the row that it is compared with, its own or empty where with none
  std::uint32_t claimed = 0;   ///< seeds that it has, the first ones
  std::vector<double> values;  ///< of its first seeds, as many as have one without a gap
  bool waits = false;          ///< a trial of it has not ended
  std::string trouble;  ///< why a seed has ended without a value that counts: "seed 1 failed"; or empty
  bool not_trained = false;
};
/// What becomes of it.
struct SeedDecision {
  std::uint32_t seeds = 0;  ///< that it is to have
  bool open = true;         ///< it may get more
  std::string why;          ///< empty: nothing was decided yet
};
/// Of each row. It follows from the values alone, in the order of the seeds: what was decided before, by
/// whom and when, makes no difference.
std::vector<SeedDecision> decide_seeds(const sweeps::SeedRule& rule, const protocol::Compare& compare,
                                       const std::vector<SeededRow>& rows);

/// Gives the rows of a sweep the seeds that they are to have by now, and notes why. Nothing for a sweep
/// without a rule, or a cancelled one. Costs its rows, times their seeds.
void grow_seeds(storage::Database& db, storage::SweepId sweep, Time now);
/// The same of every sweep that wants a trial which has ended.
void grow_after(storage::Database& db, storage::TrialId trial, Time now);

}  // namespace abl::scheduler
