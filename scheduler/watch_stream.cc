// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watch_stream.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <functional>

#include "storage/sweep_store.h"
#include "views/views.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SweepDetail;
using ablate::v1::SweepProgress;
using ablate::v1::TrialSummary;

constexpr std::uint32_t kTrialsAtOnce = 2000, kRowsShown = 1000;

bool under_way(const TrialSummary& trial) {
  return trial.state() == ablate::v1::TRIAL_STATE_LEASED || trial.state() == ablate::v1::TRIAL_STATE_RUNNING;
}

/// Equal for equal trials: the metrics are a map, which is serialized in another order each time unless told.
std::size_t hash_of(const TrialSummary& trial) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream{&bytes};
    google::protobuf::io::CodedOutputStream coded{&stream};
    coded.SetSerializationDeterministic(true);
    trial.SerializeToCodedStream(&coded);
  }
  return std::hash<std::string>{}(bytes);
}

bool finished(const ablate::v1::SweepSummary& summary) {
  const auto& trials = summary.trials();
  return trials.queued() + trials.leased() + trials.running() == 0;
}

}  // namespace

bool WatchStream::concerns(const std::set<storage::Change>& changes) const {
  return std::any_of(changes.begin(), changes.end(), [this](const storage::Change& change) {
    return change.sweep == sweep_ || change.sweep.empty();
  });
}

SweepDetail WatchStream::look_at_rows(storage::Database& db) {
  const storage::Transaction snapshot{db, storage::Transaction::kRead};
  if (next_ == 0) {
    record_ = storage::SweepStore{db}.get(sweep_);
    record_.text = record_.canonical = {};
    summary_ = views::sweep_summary(db, record_);
    over_ = finished(summary_);
  }
  return views::sweep_trials(db, record_, {.first = next_, .most_trials = kTrialsAtOnce});
}

/// Some rows at a time, as far as the first news: a sweep may have 100,000 trials.
bool WatchStream::look(storage::Database& db) {
  SweepProgress progress;
  do {
    auto part = look_at_rows(db);
    for (TrialSummary& trial : *part.mutable_trials()) {
      if (place_ == sent_.size()) sent_.push_back(0);
      std::size_t& before = sent_[place_++];  // by place: two rows may share a trial
      const std::size_t now = hash_of(trial);
      if (under_way(trial) || now != before) progress.mutable_trials()->Add(std::move(trial));
      before = now;
    }
    next_ = part.next();
    if (next_ > 0) continue;
    place_ = 0;
    *progress.mutable_table() = tables_.table(db, sweep_)->part({.count = kRowsShown, .with_baseline = true});
  } while (next_ != 0 && progress.trials().empty());
  *progress.mutable_summary() = summary_;
  progress.set_trouble(coordinator_.trouble());
  send(std::move(progress));
  if (next_ != 0) wake();
  return next_ == 0 && over_;  // what has changed meanwhile leads to another look
}

}  // namespace abl::scheduler
