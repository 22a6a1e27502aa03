// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/coordinator.h"

namespace abl::scheduler {

/// What is said of a sweep, so that people find it again; what is not given stays. Nothing that runs changes.
struct Annotation {
  static constexpr std::size_t kLongestTag = 50, kMostTags = 20, kMostNotes = 64 << 10;  ///< of notes: bytes

  std::vector<std::string> add_tags{}, remove_tags{};
  std::optional<bool> pinned{};
  std::optional<bool> archived{};  ///< its tuning sweeps with it
  std::optional<std::string> notes{};
  std::optional<std::string> expected_notes{};  ///< those that the new ones are written over
};

/// Throws: Error{kInvalidArgument} for a tag, or notes, that no sweep may have.
void check(const Annotation& annotation);

/// One change, made by the coordinator and answered after the commit. Answers Error{kNotFound} for a sweep
/// that is not there, Error{kFailedPrecondition} where one is to be archived of which something waits or
/// runs, or has too many tags, Error{kAborted} where the notes are not the expected ones. Thread: any.
/// Throws: as check.
void annotate_sweep(Coordinator& coordinator, const std::string& sweep, Annotation annotation,
                    Coordinator::Answer<> answer);

/// The same within a change that is under way.
void annotate(storage::Database& db, const storage::SweepRecord& sweep, const Annotation& annotation,
              Time now);

}  // namespace abl::scheduler
