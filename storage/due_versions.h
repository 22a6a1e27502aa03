// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// The result version that each stored trial would have today. A correction of the trainer raises it for the
/// trials that it touches: results of an older version were made before it.
/// Thread: the connection's.
class DueVersions {
 public:
  explicit DueVersions(Database& db) : db_{db} {}

  /// Looks at every trial of the trainer's, once for each release that knows other changes: `newest` is the
  /// newest version of this one, `version_of` that of a trial's document.
  void update(int newest, const std::function<int(const std::string& config)>& version_of);
  /// The newest version that a call of `update` has known.
  int known() const;

  /// Queued trials of an older version become what `renewed` makes of them, without the checkpoints of the
  /// old; where that trial is there already, their claims go over to it.
  bool renew_queued(const Renew& renewed);
  /// A trial that has not completed becomes today's, or gives its place to the one that is.
  void renew(const TrialRecord& trial, const RenewedTrial& today);

 private:
  Database& db_;
};

}  // namespace abl::storage
