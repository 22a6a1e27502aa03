// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// The weights that trials name, and the files that the names stand for. A recipe may say the SHA-256 that it
/// wants, and its trainer sees to that. Where it does not, the name tells trials apart, so it stands for one
/// file: the first that a run reports.
/// Thread: the connection's.
class WeightsStore {
 public:
  explicit WeightsStore(Database& db) : db_{db} {}

  /// `wanted`: name -> SHA-256 that the recipe wants, or empty.
  void insert(TrialId trial, const std::map<std::string, std::string>& wanted);
  /// Weights that are not those that this store's results are of, and which those are.
  struct Wrong {
    std::string name, wanted, how;
  };
  /// `reported`: name -> SHA-256 of the file that the run has.
  std::optional<Wrong> wrong(const RunRecord& run, const std::map<std::string, std::string>& reported) const;
  /// Pins what is not pinned yet.
  /// Throws: Error{kFailedPrecondition} for weights that are wrong.
  void pin(const RunRecord& run, const std::map<std::string, std::string>& reported);
  /// The pinned SHA-256 of a name, or nothing.
  std::optional<std::string> pinned(const std::string& name) const;

 private:
  std::vector<std::string> standing_alone(TrialId trial) const;
  Database& db_;
};

}  // namespace abl::storage
