// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ablate/v1/sweeps.pb.h"
#include "cli/terminal.h"

namespace abl::cli {

/// A sweep under way as people watch it: keeps what the stream of changes has said so far, of trials that
/// ended well or wait no more than that. Thread: one.
class WatchScreen {
 public:
  /// Takes the next message. Returns a line for each trial that finished, failed or went back to the queue
  /// since the message before.
  std::vector<std::string> update(const ablate::v1::SweepProgress& progress);

  /// The whole picture for a terminal: summary, bar with rate and ETA, running trials, table.
  std::vector<std::string> lines(const Terminal& terminal) const;
  /// "2 trials wait: all 2 slots are busy": a line for each reason that queued trials have.
  std::vector<std::string> waiting() const;
  /// The same without counts, and without how long a retry takes yet: what is new in it is worth a line.
  std::set<std::string> reasons() const;
  /// "msf-sharing 42%, 5/12 trials, 2 running, 23.1 steps/s, ETA 3m 05s".
  std::string status() const;
  /// That, and why, the scheduler can store nothing; or empty.
  std::string trouble() const;
  /// The trials that failed for good, with their reasons.
  std::vector<std::string> failures() const;

  const ablate::v1::SweepSummary& summary() const { return progress_.summary(); }
  const ablate::v1::Table& table() const { return progress_.table(); }
  /// Where the stream is to go on after a break.
  std::uint64_t number() const { return number_; }
  /// Work done, of all: a running trial counts by its steps.
  double fraction() const;

 private:
  using Key = std::pair<std::string, std::int64_t>;  // row, seed
  double rate() const;                               // optimiser steps a second, all running trials together
  std::string metrics_of(const ablate::v1::TrialSummary& trial) const;
  std::vector<ablate::v1::Column> metrics() const;
  std::vector<std::string> running(const Terminal& terminal) const;

  ablate::v1::SweepProgress progress_;  // the last, without trials, and with the table that was said last
  std::map<Key, ablate::v1::TrialSummary> trials_;  // that are shown, or will be
  std::map<Key, ablate::v1::TrialState> states_;
  bool begun_ = false;  // it is known how everything stood
  std::uint64_t number_ = 0;
};

}  // namespace abl::cli
