// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "storage/measured_store.h"
#include "storage/queue_store.h"
#include "storage/types.h"
#include "storage/worker_store.h"
#include "views/eta.h"

namespace abl::views {

/// When sweeps will be complete: from what completed runs of their rows took, here or in earlier sweeps, from
/// what rows that take as long took, from the rates of those that run; and from the slots that the connected
/// workers have for them beside the other sweeps. Reads a bounded part of each open sweep, once for all.
/// Thread: the connection's.
class Forecasts {
 public:
  /// `asked`: the sweeps of which it will be asked; they are looked at more closely than those that compete.
  /// `predicted`: seconds of a trial by its row's config_hash, where nothing of it has been measured; beside
  /// them those in the store.
  Forecasts(storage::Database& db, std::set<storage::SweepId> asked, Time now,
            std::map<std::string, double> predicted = {});

  /// Nothing for a sweep that is paused, or of which nothing waits or runs.
  std::optional<ablate::v1::Forecast> of(storage::SweepId sweep);
  /// Of one that is not in the store, as of an owner of its own: of its rows what `LeftOfRow` needs but what
  /// is measured.
  ablate::v1::Forecast of_new(std::vector<storage::LeftOfRow> rows, const storage::StoredDemand& demand);

 private:
  struct Looked {
    storage::OpenStanding standing;
    Remaining remaining;
    std::uint32_t runs = 0, guessed = 0;
    double predicted = 0;
    std::string unknown;
    std::vector<std::size_t> shared;    ///< of what waits: what waits for an earlier sweep, too
    std::set<std::size_t> shares_with;  ///< places of these sweeps
  };
  void look();
  std::vector<Remaining> without_shared() const;
  Looked look_at(const storage::OpenStanding& standing, const std::vector<storage::LeftOfRow>& rows,
                 const std::vector<storage::RunningTrial>& running);
  double places(const storage::StoredDemand& demand) const;
  double places(std::uint32_t shape);
  bool is_command(std::uint32_t shape);
  const std::optional<storage::Measured>& measured(const std::string& hash, int gpus);
  ablate::v1::Forecast forecast(const Looked& looked, const Completion& completion,
                                const std::vector<Looked>& all) const;

  static constexpr std::uint32_t kNewShape = 0xffffffff;
  storage::Database& db_;
  const std::set<storage::SweepId> asked_;
  const Time now_;
  const std::map<std::string, double> predicted_;
  bool looked_ = false;
  std::vector<storage::WorkerRecord> workers_;  // that take trials
  std::set<std::string> take_trials_;           // their names
  bool others_connected_ = false;               // but take none
  double slots_ = 0;                            // of theirs, and of others those where something runs
  std::set<storage::TrialId> held_;             // trials that run, of the sweeps that were looked at
  std::vector<Looked> sweeps_;
  std::map<storage::TrialId, std::size_t>
      wanted_by_;  // first trials of rows of which some wait: by which sweep
  std::vector<Completion> completions_;
  std::map<std::uint32_t, double> places_;  // by shape
  std::map<std::uint32_t, bool> commands_;  // by shape
  std::map<std::pair<std::string, int>, std::optional<storage::Measured>> measured_;
};

}  // namespace abl::views
