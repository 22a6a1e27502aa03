// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watch_stream.h"

#include <algorithm>

#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SweepProgress;
using ablate::v1::TrialSummary;

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
                     [this](const Change& change) { return change.sweep == sweep_; });
}

bool WatchStream::look(storage::Database& db) {
  SweepProgress progress = views::progress(db, sweep_);
  google::protobuf::RepeatedPtrField<TrialSummary> news;
  std::uint32_t place = 0;
  for (TrialSummary& trial : *progress.mutable_trials()) {
    std::string& before = sent_[place++];  // by place: two rows may share a trial
    std::string now = trial.SerializeAsString();
    if (under_way(trial) || now != before) news.Add(std::move(trial));
    before = std::move(now);
  }
  progress.mutable_trials()->Swap(&news);
  const bool over = finished(progress.summary());
  send(std::move(progress));
  return over;
}

}  // namespace abl::scheduler
