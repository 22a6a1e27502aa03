// SPDX-License-Identifier: Apache-2.0
// What an end means for other trials: failures of many runs, workers in quarantine, rows that get a seed.
#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "scheduler/budget.h"
#include "scheduler/coordinator.h"
#include "scheduler/seed_growth.h"
#include "scheduler/tuning.h"
#include "storage/breaker_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using storage::Database;
using storage::RunId;

}  // namespace

/// In the job that stores what a run says: what that means for trials that have something in common with its
/// own. `measured`: it has reported a number.
void Coordinator::judge(Database& db, const std::string& worker, bool measured, Reported& report) {
  if (report.trial == 0) return;
  report.claimants = queue_.claimants(report.trial);
  if (report.ended) refresh_budgets_of(db, report.trial, clock_.now());
  if (report.trial_state == storage::TrialState::kCompleted ||
      report.trial_state == storage::TrialState::kFailed)
    tune_after(db, report.trial, clock_.now());
  looks_due_ = grow_due(db, clock_.now()) || looks_due_;
  storage::BreakerStore breaker{db};
  report.through = measured && queue_.is_tried(report.trial);
  if (report.through) breaker.got_through(report.trial);
  if (report.trial_state == storage::TrialState::kCompleted) breaker.completed(report.trial, clock_.now());
  if (report.trial_state != storage::TrialState::kFailed) return;
  if (quarantine_.contains(worker)) return;  // more likely its fault
  const bool elsewhere =
      queue_.contains(report.trial) && fleet_.could_go_elsewhere(queue_.demand(report.trial), worker);
  std::set<storage::SweepId> done;  // one reason is enough for a sweep
  for (const storage::FailureCounts& counts : breaker.failed(report.trial, worker)) {
    if (done.contains(counts.of.sweep) || !is_to_hold(counts, elsewhere)) continue;
    done.insert(counts.of.sweep);
    const std::string why =
        breaker.begin_hold(counts.of, level_text(counts.of, counts.sweep), counts.failures);
    if (why.empty()) continue;
    report.note += "; held: " + why;
    for (const RunId run : breaker.leased(counts.of)) report.unwanted.push_back(run);
    if (const auto from = breaker.hold(counts.of, {}, clock_.now()))
      report.holds.emplace_back(counts.of, *from);
  }
}

/// Goes on with what was held in part: it may be a hundred thousand trials.
void Coordinator::hold_on(const storage::SweepLevel& level, storage::HoldFrom from) {
  commit(
      [this, level, from](Database& db) { return storage::BreakerStore{db}.hold(level, from, clock_.now()); },
      [this, level, from](std::exception_ptr error, const std::optional<storage::HoldFrom>& next) {
        if (!error && next) return hold_on(level, *next);
        if (error) holds_left_.emplace_back(level, from);  // the disk is full, say: the next tick goes on
      });
}

/// Goes on with rows whose seeds a rule is to look at: all that are compared with a baseline, say.
void Coordinator::grow_on() {
  if (!std::exchange(looks_due_, false)) return;
  commit([this](Database& db) { return grow_due(db, clock_.now()); },
         [this](std::exception_ptr error, bool more) {
           if (error) return;  // the next tick goes on
           looks_due_ = looks_due_ || more;
           look_at_queue();
           grow_on();
         });
}

/// After the commit: the rest of what it holds.
void Coordinator::follow_holds(const Reported& report) {
  for (const auto& [level, from] : report.holds) hold_on(level, from);
  for (const RunId run : report.unwanted) call_back(run);  // its trial is held when it comes back
}

/// After the commit: what it says of its worker.
void Coordinator::learn(const std::string& worker, bool measured, bool probe, const Reported& report) {
  follow_holds(report);
  if (measured && report.state != storage::RunState::kFailed)
    quarantine_.got_through(worker, report.claimants);
  if (report.state == storage::RunState::kCompleted)
    if (auto change = quarantine_.completed(worker, report.claimants)) confine({*std::move(change)});
  if (report.state == storage::RunState::kFailed)
    confine(quarantine_.failed(worker, report.trial, report.claimants, report.reason, probe));
}

/// Workers come into quarantine, or out of it: at once, lest they get another trial meanwhile.
void Coordinator::confine(std::vector<Quarantine::Change> changes) {
  if (changes.empty()) return;
  for (const Quarantine::Change& change : changes)
    fleet_.set_quarantine(change.worker, change.why, clock_.steady() + change.back_off);
  commit(
      [this, changes](Database& db) {
        for (const Quarantine::Change& change : changes) {
          std::optional<storage::WorkerRecord::Quarantine> stored;
          if (change.why) stored = {*change.why, clock_.now() + change.back_off, change.back_off};
          storage::WorkerStore{db}.set_quarantine(change.worker, stored);
        }
        return true;
      },
      [this, changes](std::exception_ptr, bool) {  // what cannot be stored now holds until the next start
        for (const Quarantine::Change& change : changes) {
          if (change.why)
            log_warning({{"worker", change.worker}}, "worker {} is in quarantine for {} s: {}", change.worker,
                        change.back_off.count() / 1000, *change.why);
          else
            log_info({{"worker", change.worker}}, "worker {} is out of quarantine", change.worker);
          for (const RunId run : fleet_.recall_of(change.worker)) call_back(run);
        }
        feed_.publish(storage::Change{});
        explain_now_ = true;
        look_at_queue();
      });
}

void Coordinator::count_workers() {
  queue_.set_canaries(std::clamp(static_cast<std::uint32_t>(fleet_.workers().size()), 1u, kCanaries));
}

}  // namespace abl::scheduler
