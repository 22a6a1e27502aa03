// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "protocol/split.h"
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
  int gpus = 0;                 ///< CUDA slots, the most where it takes fewer too; 0: any one slot
  protocol::Split split{};      ///< how these may be divided among workers
  std::string data;             ///< logical data name, or empty
  std::vector<Wanted> weights;  ///< by their SHA-256
  bool command = false;
  storage::Where where{};  ///< labels of its worker
  bool spread = false;     ///< rather where little runs, though it takes GPUs
  /// Of its results: a trainer of that version or a newer one makes them, as far as this release knows its
  /// version and so that nothing in between touches the trial. Nothing: any (a command, or not looked at).
  std::optional<int> result_version;
  bool packs = false;       ///< it may share a GPU
  bool sources = false;     ///< it takes the weights of other trials
  double memory_bytes = 0;  ///< that its runs take; 0: not measured yet, or not to be shared with
  Milliseconds takes{0};    ///< what runs like it take; 0: nobody knows
  std::string home;         ///< host with its newest checkpoint: preferred, since there it can be resumed
  std::set<std::uint64_t> refused_by;    ///< sessions that are not asked again for a while
  std::vector<std::string> failed_on{};  ///< hosts that it is kept from
};

/// One slot of a connected worker.
struct SlotState {
  std::uint32_t index = 0;
  bool cuda = false;
  bool busy = false;
  int ahead = 0;      ///< runs that are leased for it and wait there until the one that executes has ended
  bool slow = false;  ///< the run that executes takes long: nothing is leased behind it
  bool clearing = false;  ///< the run that executes was told to give way
  bool awaited = false;   ///< a trial waits for it that goes first: nothing is leased ahead there
  bool reserved = false;  ///< kept free for a trial that needs several, or one for itself
  double memory = 0;      ///< of its GPU, in bytes; 0: not known
  int sharing = 0;        ///< runs that execute in it, where others may be put beside them; 0: none may
  double used = 0;        ///< bytes that these take
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
  storage::Labels labels{};
  std::uint64_t session = 0;
  int result_version = 0;  ///< the newest that its trainer has; 0: it has no trainer
  bool allows_commands = false;
  bool takes_sources = false;             ///< it can give a run the weights of another
  bool joins = false;                     ///< it takes part in runs of several workers
  bool draining = false;                  ///< it is stopping: it gets nothing more
  std::optional<std::string> drained;     ///< somebody wants it to get nothing, and why
  std::optional<std::string> quarantine;  ///< it gets one trial at a time, and why
  bool resting = false;                   ///< in quarantine: it gets nothing now
  std::string trouble;  ///< why it gets nothing until it is well again, in its words; empty: it is
  Mapped data, weights;
  std::vector<SlotState> slots;
  std::optional<Time>
      ends{};  ///< when it asks its runs to stop, for its time is over; nothing: it has no end
  Milliseconds whole{0}, left{0};  ///< until then: when it started, and now; of one that ends
};

/// What a run may take that is like those which took so long.
constexpr Milliseconds with_reserve(Milliseconds takes) { return takes + takes / 10; }
/// What must be left of a worker's time for a trial: where it cannot go on elsewhere, all that it takes;
/// else, and where nobody knows how long it takes, what is worth a start (launchers::worthwhile).
Milliseconds wants_left(const Demand& demand, const WorkerState& worker);
/// Of a trial that finds no place: workers would take it but for their time. Returns: the longest `takes`
/// that the time of one would do for; nothing: it is not for their time.
std::optional<Milliseconds> time_left_for(const Demand& demand, const std::vector<WorkerState>& workers);

/// A trial and the slots that it gets.
struct Placement {
  struct Part {
    std::uint64_t session = 0;
    std::vector<std::uint32_t> slots;
  };
  storage::TrialId trial = 0;
  std::uint64_t session = 0;
  std::vector<std::uint32_t> slots;
  bool beside = false;        ///< others execute in the slot
  std::vector<Part> parts{};  ///< of the other workers, where several run it
};

/// How a trial would be divided among workers.
struct Division {
  int workers = 1;
  int slots = 1;  ///< of all of them
  int each = 0;   ///< of each; 0: as they have them
};

/// On how many workers a trial is to run, and with how many slots, by what the connected ones have, free or
/// not: on one where one has all that it takes; otherwise, or where its sweep says so, on several. One that
/// takes fewer too gets as many as there are. Nothing where they do not have what it takes.
std::optional<Division> divide(const Demand& demand, const std::vector<WorkerState>& workers);

/// Whether a trial takes several slots, so that they have to be kept for it one by one.
bool takes_several(const Demand& demand);

/// Places a trial, if workers can take it now, and marks its slots busy: all of them, or none. Among several
/// workers the trial's home goes first, then, for one slot, the worker with most free slots (even load); for
/// GPUs, the one with fewest that suffice (large gaps stay). Of several workers that run it together, the
/// home, or that with most, has the lease.
std::optional<Placement> place(const Demand& demand, std::vector<WorkerState>& workers);

/// Places a trial of one slot behind another run, where at most `depth` wait there then: for runs so short
/// that their worker would otherwise wait for the scheduler. The shortest such line goes first.
std::optional<Placement> place_ahead(const Demand& demand, std::vector<WorkerState>& workers, int depth);

/// Places a trial beside the runs in a slot, `most` together, where memory for all of them is known and a
/// tenth of the GPU's is left: in the one that has fewest runs.
std::optional<Placement> place_beside(const Demand& demand, std::vector<WorkerState>& workers, int most);

/// Whether runs that share a GPU get enough done: by the steps a second of one that had it for itself, and of
/// one of so many at once. True where either is not known.
bool sharing_pays(double alone, double shared, double at_once);

/// Of a trial that has failed on some hosts: no other than these could take it, so that they may.
void allow_where_it_failed(Demand& demand, const std::vector<WorkerState>& workers);

/// Whether a worker could take a trial if all its slots were free.
bool could_take(const Demand& demand, const WorkerState& worker);

/// Of a trial that finds no place: nothing is leased ahead of it where it could run, until `unreserve`, or
/// lines that never become empty would keep it out for ever. Returns: whether any worker could take it.
bool await(const Demand& demand, std::vector<WorkerState>& workers);

/// Keeps slots free for a trial of several that finds no place: trials of one would always be quicker than
/// the next slot. Of one worker, of that with most that are or soon will be, or of as many workers as it
/// takes. All for one trial: two that each held a part of what they need would wait for ever. Until
/// `unreserve`. Returns: whether workers could take it once these are free.
bool reserve(const Demand& demand, std::vector<WorkerState>& workers);
/// Likewise for a trial that needs one slot for itself where runs share every one that it could use: nothing
/// is put beside those of one slot, that of the fewest. Returns: whether it is so.
bool keep_from_sharing(const Demand& demand, std::vector<WorkerState>& workers);
void unreserve(std::vector<WorkerState>& workers);

/// Why nobody can take a trial now, for people: the first requirement that no connected worker meets.
std::string why_waiting(const Demand& demand, const std::vector<WorkerState>& workers);

}  // namespace abl::scheduler
