// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// Which content each data set's name stands for: the first that a run reported, until somebody says another.
/// Thread: the connection's.
class DataPins {
 public:
  explicit DataPins(Database& db) : db_{db} {}

  /// Name -> fingerprint.
  std::map<std::string, std::string> all() const;

  /// What the store knows of a name that is pinned, or that trials need.
  struct Use {
    std::string name, fingerprint;   ///< empty: no run has reported one
    RunId run = 0;                   ///< that reported the first one
    std::optional<Time> since{};     ///< when that run was leased
    std::uint32_t trials = 0;        ///< completed, with this content
    std::uint32_t other_trials = 0;  ///< completed, with another that had the name before
    std::uint32_t waiting = 0;       ///< queued or held
  };
  /// By name. Looks at every trial, once, for whoever asks.
  std::vector<Use> uses() const;

  /// From now on a name stands for another content. Results that there are keep theirs, and so do runs that
  /// are under way; of each trial that waits it is decided when it is leased (`follow`).
  /// Throws: Error{kNotFound} for a name that no run has reported, with those that there are;
  /// Error{kInvalidArgument} for a fingerprint that is none.
  void repin(const std::string& name, const std::string& fingerprint);

  /// Of a trial that is about to be leased: it becomes one of the content that its data's name has now. What
  /// it did with another one is not gone on with. Where there is such a trial already, that one takes its
  /// place. Returns: whether it is still to be leased.
  bool follow(TrialId trial);

 private:
  Database& db_;
};

}  // namespace abl::storage
