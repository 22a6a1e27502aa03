// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Weights that a trial takes from another: where they lie.
struct SourceFile {
  std::string name;  ///< in its recipe
  protocol::Taken take = protocol::Taken::kBest;
  TrialId trial = 0;            ///< the other
  TrialState state{};           ///< of the other
  CheckpointRecord checkpoint;  ///< `path` is where it stays; run 0: none is known
  std::string what;             ///< for people: "row a, seed 0"
};

/// Chains: trials that take the weights of others. That a trial waits for those, and is held where one of
/// them cannot be completed, the triggers of the schema see to.
/// Thread: the connection's.
class ChainStore {
 public:
  explicit ChainStore(Database& db) : db_{db} {}

  /// Links a trial that is new to those whose weights it takes, which are there.
  /// Throws: Error{kInternal} where one is not.
  void link(TrialId trial, const std::vector<NewSource>& sources);
  /// A trial that takes another's place takes the same weights.
  void copy(TrialId from, TrialId to);
  /// The trials that take the weights of one and are neither under way nor completed take those of another,
  /// where that is of its identity, and begin anew.
  void take_instead(TrialId source, TrialId other);
  /// Those whose weights a trial takes itself.
  struct Link {
    TrialId source = 0;
    std::string name;
    protocol::Taken take = protocol::Taken::kBest;
  };
  std::vector<Link> links(TrialId trial) const;
  /// A trial's document with the names of those that have taken the place of its sources since the trainer
  /// was corrected, and a version that is no older than theirs.
  RenewedTrial with_newest_sources(TrialId trial, RenewedTrial today) const;
  /// Links a trial to those in place of the sources of `like`, which may be itself.
  void link_to_newest(TrialId trial, TrialId like);
  /// The weights that a trial takes itself, by name.
  std::vector<SourceFile> files(TrialId trial) const;
  /// The trials whose weights it takes, and whose those take, that are not completed.
  std::vector<TrialId> awaited(TrialId trial) const;
  bool is_chained(TrialId trial) const;
  /// The newest result version of those whose weights it takes: its own is no older. 0: it takes none.
  int version_of_sources(TrialId trial) const;

  /// Holds a trial whose sources are completed and have no such checkpoint, until they run again: it is
  /// never trained from something else. Returns: whether it is so.
  bool hold_without_weights(TrialId trial, const std::vector<SourceFile>& files);

  /// Holds a queued trial that takes weights from before a correction of the trainer, or of a document that
  /// was corrected. Returns: whether it is so.
  bool hold_outdated(TrialId trial);

  /// Which files a run was given.
  void note(RunId run, const std::vector<SourceFile>& files);
  /// What a run was given: name and SHA-256, and who wrote it.
  struct Given {
    std::string name, sha256;
    RunId run = 0;
    std::uint32_t step = 0;
  };
  std::vector<Given> given(RunId run) const;

 private:
  CheckpointRecord checkpoint(TrialId source, protocol::Taken take) const;
  Database& db_;
};

}  // namespace abl::storage
