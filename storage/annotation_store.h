// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "storage/database.h"
#include "storage/types.h"

namespace abl::storage {

/// What people say of sweeps, so that they and others find them again. Nothing that runs depends on it.
/// Thread: the connection's.
class AnnotationStore {
 public:
  explicit AnnotationStore(Database& db) : db_{db} {}

  /// As they stand; read in the order of their letters, each once.
  void set_tags(SweepId sweep, std::vector<std::string> tags);
  void set_pinned(SweepId sweep, bool pinned);
  /// Whether lists leave it out. It comes back by itself when a trial of it is queued.
  void set_archived(SweepId sweep, bool archived, Time now);
  std::string notes(SweepId sweep) const;  ///< Markdown
  void set_notes(SweepId sweep, const std::string& notes);

 private:
  Database& db_;
};

}  // namespace abl::storage
