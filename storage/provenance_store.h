// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Where a sweep comes from, as its submitter said.
struct ProvenanceRecord {
  std::string facts_json;      ///< what views/ makes of a message, without the two below
  std::string diff, packages;  ///< empty: none
  Time time{};
};

/// What was seen of sweeps' folders when they were submitted. Texts that several have are stored once.
/// Thread: the connection's.
class ProvenanceStore {
 public:
  static constexpr int kMost = 100;  ///< of a sweep: of further ones the newest takes the place of the last

  explicit ProvenanceStore(Database& db) : db_{db} {}
  /// One more, behind those that the sweep has: as it was submitted, then each time that it grew.
  void add(SweepId sweep, const ProvenanceRecord& record, Time now);
  std::vector<ProvenanceRecord> of(SweepId sweep) const;
  /// All of a sweep, and the texts that no other has.
  void forget(SweepId sweep);

 private:
  void forget(SweepId sweep, int from);
  void keep_text(const std::string& hash, const std::string& text);
  Database& db_;
};

}  // namespace abl::storage
