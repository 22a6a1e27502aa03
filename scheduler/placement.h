// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/types.h"

namespace abl::scheduler {

/// What a trial needs by its logical name, and which content of it.
struct Wanted {
  std::string name;
  std::string digest{};  ///< empty: any, or the one that this store's results are of
  auto operator<=>(const Wanted&) const = default;
};

/// What a queued trial needs of a worker.
struct Demand {
  storage::TrialId trial = 0;
  int gpus = 0;                 ///< CUDA slots of one worker; 0: any one slot
  std::string data;             ///< logical data name, or empty
  std::vector<Wanted> weights;  ///< by their SHA-256
  bool command = false;
  /// Of its results: a trainer of that version or a newer one makes them, as far as this release knows its
  /// version and so that nothing in between touches the trial. Nothing: any (a command, or not looked at).
  std::optional<int> result_version;
  std::string home;  ///< host with its newest checkpoint: preferred, since there it can be resumed
};

/// One slot of a connected worker.
struct SlotState {
  std::uint32_t index = 0;
  bool cuda = false;
  bool busy = false;
};

/// What a worker has of one kind, by logical names: data sets, or weights.
struct Mapped {
  std::set<std::string> names;
  std::map<Wanted, std::string> wrong;      ///< of these: another version than the wanted one, and how
  std::map<std::string, std::string> gone;  ///< of these: not to be had now, and why
  bool has(const Wanted& wanted) const {
    return names.contains(wanted.name) && !wrong.contains(wanted) && !gone.contains(wanted.name);
  }
};

/// A connected worker, as placement sees it.
struct WorkerState {
  std::string name, host;
  std::uint64_t session = 0;
  int result_version = 0;  ///< the newest that its trainer has; 0: it has no trainer
  bool allows_commands = false;
  bool draining = false;  ///< it is stopping: it gets nothing more
  std::string trouble;    ///< why it gets nothing until it is well again, in its words; empty: it is
  Mapped data, weights;
  std::vector<SlotState> slots;
  std::map<storage::TrialId, std::string> refused;  ///< trials that it refused lately, with its reasons
};

/// A trial and the slots that it gets.
struct Placement {
  storage::TrialId trial = 0;
  std::uint64_t session = 0;
  std::vector<std::uint32_t> slots;
};

/// Places a trial, if any worker can take it now, and marks its slots busy. Among several workers the trial's
/// home goes first, then, for one slot, the worker with most free slots (even load); for GPUs, the one with
/// fewest that suffice (large gaps stay).
std::optional<Placement> place(const Demand& demand, std::vector<WorkerState>& workers);

/// Why nobody can take a trial now, for people: the first requirement that no connected worker meets.
std::string why_waiting(const Demand& demand, const std::vector<WorkerState>& workers);

}  // namespace abl::scheduler
