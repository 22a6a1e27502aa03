// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string_view>

namespace abl {

/// Places at which a program can be made to die, to stop, to wait or to fail: what a crash at an awkward
/// moment leaves behind is tested by crashing there (tests/chaos).
enum class FailPoint {
  kSubmit,                 ///< a sweep is in the transaction that stores it
  kMigration,              ///< the schema is changed, and not committed
  kBeforeCommit,           ///< of the scheduler's writer
  kAfterCommit,            ///< stored, and nobody has heard
  kBeforeAcknowledgement,  ///< of a batch, which is stored
  kAfterAcknowledgement,   ///< it is on its way
  kBeforeAssignment,       ///< the lease is stored
  kAfterAssignment,        ///< it is on its way
  kBeforeProgram,          ///< the run's folder is there
  kAfterProgram,           ///< it runs
  kBeforeSpoolWrite,       ///< a batch is on no disk
  kAfterSpoolWrite,        ///< nor sent
  kBeforeSpoolDelete,      ///< all of it is acknowledged
  kAfterSpoolDelete,       ///< and the run is still known
  kBeforeEnd,              ///< the program has ended, and nothing says so
  kAfterEnd,               ///< the end is in the spool, not sent
  kBeforeRename,      ///< of a file that appears as a whole, as a checkpoint: written, under another name
  kAfterRename,       ///< and nobody was told of it
  kBeforeTrainerEnd,  ///< the training is done, and nothing says so
};

constexpr std::string_view name_of(FailPoint place) {
  switch (place) {
    case FailPoint::kSubmit:
      return "scheduler.submit";
    case FailPoint::kMigration:
      return "scheduler.migration";
    case FailPoint::kBeforeCommit:
      return "scheduler.before-commit";
    case FailPoint::kAfterCommit:
      return "scheduler.after-commit";
    case FailPoint::kBeforeAcknowledgement:
      return "scheduler.before-ack";
    case FailPoint::kAfterAcknowledgement:
      return "scheduler.after-ack";
    case FailPoint::kBeforeAssignment:
      return "scheduler.before-assign";
    case FailPoint::kAfterAssignment:
      return "scheduler.after-assign";
    case FailPoint::kBeforeProgram:
      return "worker.before-program";
    case FailPoint::kAfterProgram:
      return "worker.after-program";
    case FailPoint::kBeforeSpoolWrite:
      return "worker.before-spool-write";
    case FailPoint::kAfterSpoolWrite:
      return "worker.after-spool-write";
    case FailPoint::kBeforeSpoolDelete:
      return "worker.before-spool-delete";
    case FailPoint::kAfterSpoolDelete:
      return "worker.after-spool-delete";
    case FailPoint::kBeforeEnd:
      return "worker.before-end";
    case FailPoint::kAfterEnd:
      return "worker.after-end";
    case FailPoint::kBeforeRename:
      return "file.before-rename";
    case FailPoint::kAfterRename:
      return "file.after-rename";
    case FailPoint::kBeforeTrainerEnd:
      return "trainer.before-end";
  }
  return {};
}

/// Whether what happens there can fail: `error` and `enospc` mean nothing elsewhere.
constexpr bool can_fail(FailPoint place) {
  return place == FailPoint::kSubmit || place == FailPoint::kMigration || place == FailPoint::kBeforeCommit ||
         place == FailPoint::kBeforeProgram || place == FailPoint::kBeforeSpoolWrite ||
         place == FailPoint::kBeforeRename;
}

/// What is to happen where, separated by commas: `name=kill|stop|delay:MS|error|enospc[@N][:PROBABILITY]`,
/// with @N at the Nth time alone, otherwise each time, with that probability. Replaces what was said before;
/// empty: nothing happens anywhere. Throws: Error{kInvalidArgument}.
void set_fail_points(std::string_view text);
/// As $ABLATE_FAIL_POINTS says. Once, first in `main`.
void read_fail_points();

namespace internal {
inline std::atomic<bool> any_fail_points = false;
void reach(FailPoint place);
}  // namespace internal

/// Nothing, unless $ABLATE_FAIL_POINTS names this place: one look at a flag.
/// Throws: there, where it says so and `can_fail`: Error{kInternal}, or what a full disk is told by.
inline void fail_point(FailPoint place) {
  if (internal::any_fail_points.load(std::memory_order_relaxed)) internal::reach(place);
}

}  // namespace abl
