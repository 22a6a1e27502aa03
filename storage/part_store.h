// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What a worker does of another one's run.
struct RunPart {
  RunId run = 0;
  int node = 0;  ///< from 1
  std::string worker, host;
  std::vector<std::uint32_t> slots;
};

/// Runs over several workers.
/// Thread: the connection's.
class PartStore {
 public:
  explicit PartStore(Database& db) : db_{db} {}

  void add(const RunPart& part);
  std::vector<RunPart> of(RunId run) const;  ///< by node
  /// Of runs under way, those that this worker takes part in, in the order of the runs.
  std::vector<RunPart> under_way_on(const std::string& worker) const;
  /// Where the ranks of a run meet.
  void meet(RunId run, const std::string& rendezvous);
  std::string rendezvous(RunId run) const;  ///< empty: it is not known
  /// Slots that a run has on all of its workers; 0: of an older file, it is not known.
  int slots_of(RunId run) const;

 private:
  Database& db_;
};

}  // namespace abl::storage
