// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scheduler/placement.h"
#include "storage/queue_store.h"

namespace abl::scheduler {

/// Trials that the same workers can take: of one shape, refused by the same sessions, kept from the same
/// hosts, and, where they may share a GPU, measured or not.
using LaneId = std::uint32_t;

/// The queue in memory: which trial is next. It holds every trial that waits or is under way, as it is
/// stored, and changes only after a commit (`put`, `erase`), except that trials whose lease is on its way to
/// the store are out of sight (`take`, `give_back`).
///
/// Next is, of the highest priority, the owner with the fewest slots in use; of his sweeps the one with the
/// fewest for its weight; of equals, the one that was served longest ago; of a sweep, the first seed of every
/// row before any second one, and then those that a rule added, by their turn. A sweep of which as many
/// trials are under way as it may have waits. Trials that several sweeps want stand in each of them, and what
/// is under way counts for each of them.
///
/// Each call costs the logarithm of what waits, times the few claims of one trial.
/// Thread: the coordinator's.
class WorkQueue {
 public:
  void put_sweep(const storage::OpenSweep& sweep);
  void erase_sweep(storage::SweepId sweep);  ///< which was removed from the store, with its trials
  /// As it is stored now: new, or instead of what was known of it.
  void put(storage::OpenTrial trial, Time now);
  /// Of a sweep that tries a few trials first (`OpenSweep::canary`) so many may be under way.
  void set_canaries(std::uint32_t trials);
  bool tries_some() const { return !canary_sweeps_.empty(); }
  bool is_tried(storage::TrialId trial) const;  ///< by such a sweep
  /// The sweeps that want a trial; none of one that is neither queued nor under way.
  std::vector<storage::SweepId> claimants(storage::TrialId trial) const;
  /// It is neither queued nor under way any more.
  void erase(storage::TrialId trial);
  void clear();

  /// What trials of a shape need; to be called before the first `put` of one, and when the files change that
  /// names of weights stand for.
  void put_shape(storage::ShapeId shape, const Demand& demand);
  bool has_shape(storage::ShapeId shape) const { return shapes_.contains(shape); }
  std::vector<storage::ShapeId> shapes() const;  ///< all that it was told

  /// What runs of trials of this `OpenTrial::pack` take of a GPU; 0: not known, or not to be shared. Its
  /// ready trials, the seeds of a row, change lanes when that becomes known.
  void put_memory(const std::string& pack, double bytes);

  struct Next {
    storage::TrialId trial = 0;
    LaneId lane = 0;
    int priority = 0;
    std::optional<Milliseconds> typical;  ///< how long runs of its sweep take; none: nobody knows yet
  };
  /// Which sweeps' trials a lane has no worker for now, by how long their runs take.
  struct Limit {
    Milliseconds longest = Milliseconds::max();
    bool unknown = true;  ///< also those of which nobody knows
  };
  /// The first trial that can be run now, but for those of `blocked` lanes, and those beyond a lane's limit;
  /// nothing when there is none. The latter costs the number of sweeps that are left out.
  std::optional<Next> next(const std::set<LaneId>& blocked, const std::map<LaneId, Limit>& limits = {}) const;
  /// To how many trials of a lane and priority runs of lower priority give way: of sweeps that ask for it, no
  /// more of each than it may have under way, and `most` in all.
  std::size_t preempting(LaneId lane, int priority, std::size_t most) const;
  /// So long after its back-off a trial that has failed is kept from the hosts where it did, while another
  /// could take it.
  static constexpr std::chrono::seconds kElsewhereFirst{60};
  /// Why a trial that could run now is kept from some hosts, for people; empty: it is not.
  std::string why_elsewhere(storage::TrialId trial) const;
  /// What it needs, and where it would rather be.
  Demand demand(storage::TrialId trial) const;
  /// It is about to be leased: out of sight until `put`, `erase` or `give_back`.
  void take(storage::TrialId trial);
  /// It was not: where it was before, unless something else has become of it.
  void give_back(storage::TrialId trial, Time now);

  /// A session refused the trial and is not asked again until then. `why`: for people.
  void refuse(storage::TrialId trial, std::uint64_t session, Time now, Time until, const std::string& why);
  /// Why it is not given to some who could take it, as the last of them had it; empty: none refused it.
  std::string why_refused(storage::TrialId trial) const;
  /// A run of these sweeps took so long: what their next ones may take (`Next::typical`).
  void ran(const std::vector<storage::SweepId>& sweeps, Milliseconds time);
  /// A run of these sweeps ended with its worker after so long: the next ones take at least that. Of what
  /// ended at once nothing follows: it is not known to be short.
  void outlived(const std::vector<storage::SweepId>& sweeps, Milliseconds time);
  static constexpr Milliseconds kTold{10'000};  // shorter ones tell nothing
  /// Back-offs and refusals that are over by `now`. Returns: the trials that had one.
  std::vector<storage::TrialId> wake(Time now);

  /// Shapes of which some trial could be run now, with what they need.
  std::vector<std::pair<storage::ShapeId, Demand>> waiting_shapes() const;
  /// Trials that could be run now, by what they need and how long they take at a stretch: as many as their
  /// sweeps may have under way. Costs the number of sweeps that wait.
  struct Waiting {
    Demand demand;
    std::size_t trials = 0;
    Milliseconds takes{0};  ///< 0: nobody knows yet, or they can go on elsewhere from a checkpoint
  };
  std::vector<Waiting> waiting() const;
  /// Of shapes of which some trial could be run now, what runs of the quickest sweep take that waits; 0:
  /// nobody knows. Costs as `waiting`.
  std::map<storage::ShapeId, Milliseconds> shortest() const;
  std::size_t size() const { return trials_.size(); }
  /// How much there is, for those who look after the scheduler. Costs the number of priorities.
  struct Load {
    std::size_t under_way = 0, ready = 0;  ///< trials; the others back off
    std::size_t lanes = 0;
    /// Trials that could be run now, by the priority of their sweep; one of several sweeps counts in each.
    std::map<int, std::size_t, std::greater<>> by_priority;
    /// Of the sweeps that wait, since when the one has got no slot that has waited for longest.
    std::optional<Time> longest;
  };
  Load load() const;
  bool contains(storage::TrialId trial) const { return trials_.contains(trial); }

  /// What it holds, a line for each sweep with a trial and for each trial, in order: to be compared with a
  /// queue that was read anew.
  std::vector<std::string> dump() const;

 private:
  /// A trial's place in a sweep.
  struct Place {
    double turn = 0;
    std::uint32_t seed_index = 0, row = 0;
    storage::TrialId trial = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Trial {
    storage::OpenTrial stored;
    LaneId lane = 0;
    bool taken = false;
    bool ready = false;                      // it stands in its sweeps' lanes
    bool counted = false;                    // among the slots that its sweeps use
    bool elsewhere = false;                  // it is kept from hosts where it failed
    Time wakes{};                            // its timer; 0: none
    std::map<std::uint64_t, Time> refusals;  // by session
    std::string why_refused;                 // the last of them
  };
  /// Slots in use for a weight: who has less is next, and of equals who was served longest ago.
  struct Share {
    double used = 0;
    std::uint64_t served = 0;
    auto operator<=>(const Share&) const = default;
  };
  struct Sweep {
    storage::OpenSweep stored{.active = false};
    int slots = 0;              // in use
    std::uint32_t running = 0;  // trials
    std::uint64_t served = 0;   // when one of its trials was taken last
    Time since{};               // that moment, or when it began to wait after that
    int standing = 0;           // in so many lanes
    std::optional<Milliseconds> typical;
    std::map<LaneId, std::set<Place>> ready;

    std::uint32_t canaries = 0;  // as many as may run while it tries some
    std::uint32_t most() const {
      const auto most = stored.max_running.value_or(std::numeric_limits<std::uint32_t>::max());
      return stored.canary ? std::min(most, canaries) : most;
    }
    bool may_run() const { return stored.active && running < most(); }
    Share share() const { return {slots / stored.weight, served}; }
  };
  /// The sweeps with ready trials of one priority and lane that may run.
  struct Turns {
    std::set<std::pair<Share, std::string>> owners;
    std::map<std::string, std::set<std::pair<Share, storage::SweepId>>> sweeps;  // of each owner
  };
  struct Owner {
    int slots = 0;
    std::uint64_t served = 0;
    std::map<std::pair<int, LaneId>, std::size_t>
        turns;  // priority and lane -> how many of his sweeps stand there
    Share share() const { return {static_cast<double>(slots), served}; }
  };
  struct Shape {
    Demand demand;
    std::size_t waiting = 0;  // ready
  };
  struct Lane {
    storage::ShapeId shape = 0;
    bool unmeasured = false;             // may share a GPU once it is known what they take of it
    std::set<std::uint64_t> refusing;    // sessions
    std::vector<std::string> failed_on;  // hosts
    std::size_t trials = 0;
  };
  void place(Trial& trial, Time now);
  void unplace(Trial& trial);
  void enter(Trial& trial);
  void leave(Trial& trial);
  void enter_lane(Sweep& sweep, LaneId lane);
  void leave_lane(Sweep& sweep, LaneId lane);
  void count_waiting(const Sweep& sweep, std::ptrdiff_t claims);
  template <class Change>
  void change(Sweep& sweep, Change change);
  template <class Change>
  void change_owner(const std::string& owner, Change change);
  void count(Trial& trial, bool counted);
  LaneId lane_of(const Trial& trial);
  void drop_lane(LaneId lane);

  std::unordered_map<storage::TrialId, Trial> trials_;
  std::unordered_map<storage::SweepId, Sweep> sweeps_;
  std::map<storage::ShapeId, Shape> shapes_;
  std::unordered_map<std::string, double> memories_;
  std::unordered_map<std::string, std::set<storage::TrialId>> packs_;  // ready ones
  std::map<LaneId, Lane> lanes_;
  std::map<std::tuple<storage::ShapeId, bool, std::set<std::uint64_t>, std::vector<std::string>>, LaneId>
      lane_ids_;
  std::map<std::string, Owner> owners_;
  std::map<int, std::map<LaneId, Turns>, std::greater<>> levels_;  // by priority
  std::set<std::pair<Time, storage::TrialId>> timers_;             // back-offs and refusals
  std::uint32_t canaries_ = 1;
  std::set<storage::SweepId> canary_sweeps_;
  std::uint64_t served_ = 0;
  LaneId next_lane_ = 1;
  Time now_{};                                          // as it was told last
  std::size_t counted_ = 0, ready_ = 0;                 // trials
  std::map<int, std::size_t, std::greater<>> waiting_;  // claims that stand in lanes, by priority
  std::set<std::pair<Time, storage::SweepId>> sweeps_waiting_;
};

// How the queue follows the store (queue_loader.cc).

/// Reads the whole queue: every sweep, and every trial that waits or is under way. Once, at the start, or
/// after a read has failed.
void load(WorkQueue& queue, storage::Database& db, Time now);
/// Reads again what a commit has touched.
void follow(WorkQueue& queue, storage::Database& db, const storage::Touched& touched, Time now);

}  // namespace abl::scheduler
