// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What runs may send to the scheduler's depot of files and fetch from there, and what of it is still wanted.
/// It only reads.
/// Thread: the connection's.
class DepotStore {
 public:
  explicit DepotStore(Database& db) : db_{db} {}

  /// Who says that it has a run: the worker's name, or nothing of one on the scheduler's own machine; and the
  /// run's token.
  struct Holder {
    std::string worker, token;
  };
  /// The trial of a run, one of whose checkpoints is to be kept.
  /// Throws: Error{kPermissionDenied} for who does not have it; kNotFound where the run has not said that it
  /// wrote such a checkpoint (not yet, perhaps).
  TrialId written(RunId run, const Holder& holder, const std::string& sha256) const;
  /// The run may have this file: a checkpoint of its trial, weights that it takes, or `pushed`, its data.
  /// Throws: Error{kPermissionDenied}.
  void expect_readable(RunId run, const Holder& holder, const std::string& sha256) const;
  /// The data set's name of a run's trial, for who has the run or takes part in it. Throws: as above.
  std::string data_of(RunId run, const Holder& holder) const;

  /// The trial's checkpoints that some run may still need: `any_of` newest first, one of them is enough;
  /// `all`: weights that trials wait for.
  struct Wanted {
    std::vector<std::string> any_of;
    std::set<std::string> all;
  };
  Wanted wanted(TrialId trial) const;
  /// Whether trials that are not over take this one's weights.
  bool others_wait(TrialId trial) const;

 private:
  RunRecord held(RunId run, const Holder& holder, bool or_part = false) const;
  Database& db_;
};

}  // namespace abl::storage
