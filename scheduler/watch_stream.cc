// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watch_stream.h"

#include <algorithm>
#include <functional>

#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SweepProgress;
using ablate::v1::TrialSummary;

constexpr std::uint32_t kTrialsAtOnce = 2000, kRowsShown = 1000;

bool under_way(const TrialSummary& trial) {
  return trial.state() == ablate::v1::TRIAL_STATE_LEASED || trial.state() == ablate::v1::TRIAL_STATE_RUNNING;
}

bool finished(const ablate::v1::SweepSummary& summary) {
  const auto& trials = summary.trials();
  return trials.queued() + trials.leased() + trials.running() == 0;
}

}  // namespace

bool WatchStream::concerns(const std::set<Change>& changes) const {
  return std::any_of(changes.begin(), changes.end(),
                     [this](const Change& change) { return change.sweep == sweep_ || change.sweep.empty(); });
}

/// Some rows at a time, as far as the first news: a sweep may have 100,000 trials.
bool WatchStream::look(storage::Database& db) {
  SweepProgress progress;
  do {
    const storage::Transaction snapshot{db, storage::Transaction::kRead};
    auto part = views::sweep_detail(db, sweep_, {.first = next_, .most_trials = kTrialsAtOnce});
    if (place_ == 0) over_ = finished(part.summary());  // before the first of them was looked at
    for (TrialSummary& trial : *part.mutable_trials()) {
      if (place_ == sent_.size()) sent_.push_back(0);
      std::size_t& before = sent_[place_++];  // by place: two rows may share a trial
      const std::size_t now = std::hash<std::string>{}(trial.SerializeAsString());
      if (under_way(trial) || now != before) progress.mutable_trials()->Add(std::move(trial));
      before = now;
    }
    next_ = part.next();
    if (next_ == 0) place_ = 0;
    progress.mutable_summary()->Swap(part.mutable_summary());
    if (next_ == 0)
      *progress.mutable_table() = views::table(db, sweep_, {.count = kRowsShown, .with_baseline = true});
  } while (next_ != 0 && progress.trials().empty());
  progress.set_trouble(coordinator_.trouble());
  const bool more = next_ != 0 || over_ != finished(progress.summary());
  send(std::move(progress));
  if (more) wake();
  return !more && over_;
}

}  // namespace abl::scheduler
