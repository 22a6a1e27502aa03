// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

using ShapeId = std::uint32_t;

/// What trials of one shape need of a worker. Its text is JSON with sorted keys: equal for equal demands.
struct StoredDemand {
  bool command = false;
  std::string data;                            ///< logical name, or empty
  int gpus = 0;                                ///< 0: any one slot
  int result_version = 0;                      ///< of the trainer; 0 for a command
  std::map<std::string, std::string> weights;  ///< name -> SHA-256, or empty: the pinned one
  Where where{};
  protocol::Split split{};
  bool pack = false;     ///< beside others on a GPU
  bool sources = false;  ///< it takes the weights of other trials

  std::string text() const;
  static StoredDemand parse(const std::string& text);
  bool operator==(const StoredDemand&) const = default;
};

/// A trial that waits or is under way, as the scheduler's queue knows it.
struct OpenTrial {
  struct Claim {
    SweepId sweep = 0;
    std::uint32_t row = 0, seed_index = 0;
    double turn = 0;  ///< of a seed that a rule added: above 0, the less the sooner
    bool operator==(const Claim&) const = default;
  };
  TrialId id = 0;
  ShapeId shape = 0;
  bool under_way = false;                ///< leased or running; otherwise queued
  Time not_before{};                     ///< by the steady clock
  std::string home;                      ///< host with its newest checkpoint, or empty
  std::vector<std::string> failed_on{};  ///< hosts of its failed attempts, in order of their names
  std::string
      pack{};  ///< under which its memory is known (MeasuredStore::memories), where it may share a GPU
  bool awaits = false;        ///< trials whose weights it takes are not completed: it cannot be run yet
  std::vector<Claim> claims;  ///< of sweeps that want it, whether they are paused or not; by sweep, row, seed
};

/// A sweep as the queue knows it.
struct OpenSweep {
  SweepId id = 0;
  bool active = true;  ///< neither paused nor cancelled
  int priority = 0;
  std::string owner;  ///< who submitted it; of equals the slots are shared between owners first
  double weight = 1;  ///< of its owner's slots it gets twice as many with 2 as with 1
  std::optional<std::uint32_t> max_running;  ///< so many of its trials are under way at once, no more
  bool preempts = false;                     ///< runs of lower priority give way to its trials
  bool canary = false;                       ///< a few run first: none has got through yet
  bool operator==(const OpenSweep&) const = default;
};

/// What the scheduler keeps in memory of the queue, read as it is stored, and shapes.
/// Thread: the connection's.
class QueueStore {
 public:
  explicit QueueStore(Database& db) : db_{db} {}

  /// The shape of trials with this demand, which is new where there is none yet.
  ShapeId shape_of(const StoredDemand& demand);
  /// Sets the shape of a trial by what is stored of it.
  void set_shape(TrialId trial);
  StoredDemand demand(ShapeId shape) const;  ///< Throws: Error{kNotFound}
  /// Why the trials of a shape wait that could be run now.
  void set_waiting(ShapeId shape, const std::string& reason);
  std::string waiting(ShapeId shape) const;

  /// Every trial that is queued or under way: bounded by what sweeps have open. To be read once, at the
  /// start.
  void each_open(const std::function<void(OpenTrial)>& take) const;
  /// One of them; nothing when it is neither queued nor under way.
  std::optional<OpenTrial> open(TrialId trial) const;
  /// Those of these (in ascending order) that are queued or under way, in ascending order.
  void each_open(std::span<const TrialId> trials, const std::function<void(OpenTrial)>& take) const;
  /// Nothing when it is not there.
  std::optional<OpenSweep> sweep(SweepId sweep) const;
  std::vector<OpenSweep> sweeps() const;  ///< all that there are
  /// Which file each name of weights stands for: name -> SHA-256.
  std::map<std::string, std::string> pins() const;

 private:
  std::string home_of(TrialId trial) const;
  std::vector<std::string> failed_on(TrialId trial) const;
  Database& db_;
};

}  // namespace abl::storage
