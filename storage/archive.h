// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

enum class KeptPoints { kAll, kThin, kNone };
enum class KeptCheckpoints { kNone, kLast, kBest };

/// What is special about a file that `ablate archive` made; nothing of any other.
struct ArchiveKind {
  std::string of_store;  ///< what it was made of
  KeptPoints points = KeptPoints::kAll;
};
std::optional<ArchiveKind> archive_kind(Database& db);

struct ArchiveOptions {
  KeptPoints points = KeptPoints::kThin;
  KeptCheckpoints checkpoints = KeptCheckpoints::kNone;
  bool provenance = true;                       ///< where its sweeps come from, with their diffs
  std::string host;                             ///< this machine's: whose checkpoints can be read
  static constexpr std::uint32_t kThinTo = 16;  ///< points of a metric of a run
};

/// What of a sweep's folder was not committed when it was submitted.
struct ArchivedDiff {
  std::string sweep;
  std::uint64_t bytes = 0;
  std::vector<std::string> files;
};

/// What a file of some sweeps holds.
struct Archived {
  std::int64_t sweeps = 0, trials = 0, completed = 0, runs = 0, points = 0, checkpoints = 0;
  std::vector<std::string>
      absent;  ///< checkpoints that were wanted and are not here, or are not what they were
  std::uint64_t bytes = 0;
  std::int64_t submissions = 0,
               packages = 0;  ///< of which it says who, where and from what; of them lists of packages
  std::vector<ArchivedDiff> diffs;
};

/// Makes `to` a results file of these sweeps alone, with their trials, ended runs and all that is known of
/// them; runs that are under way are left out, and their trials wait in it. The same sweeps of the same store
/// give the same bytes. It appears as a whole or not at all. `from` is only read, whoever writes it
/// meanwhile. Throws: Error{kNotFound} for a sweep that is not there; what is wrong with `from`;
/// kResourceExhausted.
Archived make_archive(const std::filesystem::path& from, const std::vector<std::string>& sweeps,
                      const ArchiveOptions& options, const std::filesystem::path& to);

/// What a merge did.
struct Merged {
  std::vector<std::string> sweeps;  ///< that are new here
  std::vector<std::string> known;   ///< that were here already; `notes` says which have grown here since
  std::vector<std::string> grown;   ///< that were here as an earlier revision, and are the archive's now
  std::int64_t new_trials = 0;      ///< of them as many as were in the archive and not here
  std::int64_t filled = 0;          ///< trials that were here without a result, and have one now
  std::int64_t there = 0;           ///< trials that were completed here, or are of no use: kept as they were
  std::int64_t runs = 0, points = 0, checkpoints = 0;
  std::vector<std::string> notes;  ///< worth knowing: results that differ, trials that run here
};

/// Brings the sweeps of another results file into one that no scheduler has open: trials are found by their
/// identity, nothing is there twice, results that are here stay. A sweep that is here as it was before it was
/// extended is extended as there. All of it or nothing. Checkpoints whose
/// files the archive holds are written below `checkpoints`, as this host's. Throws: Error{kAlreadyExists}
/// with a line for each conflict: a sweep of the same name and another content, data or weights of a name
/// that stand for another content here.
Merged merge_archive(Database& into, const std::filesystem::path& archive,
                     const std::filesystem::path& checkpoints, const std::string& host);

}  // namespace abl::storage
