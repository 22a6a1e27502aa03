// SPDX-License-Identifier: Apache-2.0
// Who gets what waits, and why the rest waits.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/fail_point.h"
#include "base/log.h"
#include "scheduler/coordinator.h"
#include "scheduler/dispatch.h"
#include "storage/queue_store.h"
#include "storage/trial_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SchedulerMessage;
using storage::Database;
using storage::RunId;

/// "gpu-01", or "gpu-01, together with gpu-02 and gpu-03".
std::string workers_text(const Pick& pick) {
  std::string text = pick.worker;
  for (std::size_t i = 0; i < pick.parts.size(); ++i)
    text += (i == 0 ? ", together with " : i + 1 < pick.parts.size() ? ", " : " and ") + pick.parts[i].worker;
  return text;
}

}  // namespace

/// After something has happened: what waits gets the slots that are free, and then a reason why it still
/// waits where somebody may want to know that now.
void Coordinator::look_at_queue() {
  dispatch_queue();
  if (!dispatching_) explain_waiting();
}

void Coordinator::dispatch_queue() {
  if (queue_lost_ > 0) return;  // until the next tick has read it
  if (dispatching_) {
    dispatch_again_ = true;
    return;
  }
  Picks picked = pick(queue_, fleet_, policy_, clock_.steady());
  if (const auto& waits = picked.waits) {
    for (const RunId run : fleet_.recall_for(waits->demand, waits->priority)) call_back(run);
    preempt(fleet_.preempt_for(waits->demand, waits->priority, waits->preempting), waits->priority);
  }
  if (picked.picks.empty()) return;
  dispatching_ = true;
  const auto picks = std::make_shared<const std::vector<Pick>>(std::move(picked.picks));
  commit([this, picks](Database& db) { return lease(db, *picks, policy_, clock_.moment()); },
         [this, picks](std::exception_ptr error, const Leased& leased) {
           dispatching_ = false;
           for (std::size_t i = 0; i < picks->size(); ++i)
             assign((*picks)[i], error || !leased.assignments[i] ? nullptr : &*leased.assignments[i]);
           if (error) return;  // the next tick tries again
           const bool again = std::exchange(dispatch_again_, false);
           if (again || leased.renewed) dispatch_queue();
           if (!dispatching_) explain_waiting();
         });
}

/// `dispatched`: its lease, which is stored; nullptr: it has none.
void Coordinator::assign(const Pick& pick, const Dispatched* dispatched) {
  if (!dispatched) {
    fleet_.unmark(pick.placement);
    queue_.give_back(pick.demand.trial, clock_.steady());
    return;
  }
  const ablate::v1::Assign& assign = dispatched->assign;
  publish(dispatched->sweeps);
  const auto session = fleet_.session(pick.placement.session);
  if (!session || std::ranges::any_of(pick.placement.parts, [&](const Placement::Part& part) {
        return !fleet_.session(part.session);
      })) {
    fleet_.unmark(pick.placement);
    return give_back(assign.run());
  }
  fleet_.occupy(session->id, assign.run(), pick.placement.slots,
                {.priority = pick.priority,
                 .resumable = !pick.demand.command,
                 .quick = pick.quick,
                 .memory_bytes = pick.demand.packs ? pick.demand.memory_bytes : 0,
                 .beside = pick.placement.beside},
                clock_.steady());
  for (const Placement::Part& part : pick.placement.parts)
    fleet_.occupy_part(part.session, assign.run(), part.slots);
  quarantine_.began(session->hello.name(), queue_.claimants(assign.trial()));
  figures_.leases.add();
  log_info({{"run", assign.run()},
            {"trial", assign.trial()},
            {"attempt", assign.attempt()},
            {"worker", session->hello.name()}},
           "run {} (trial {}, attempt {}) goes to {}", assign.run(), assign.trial(), assign.attempt(),
           workers_text(pick));
  SchedulerMessage message;
  *message.mutable_assign() = assign;
  if (mark_) mark_(*message.mutable_assign());
  fail_point(FailPoint::kBeforeAssignment);
  session->channel->send(std::move(message));
  fail_point(FailPoint::kAfterAssignment);
}

/// Stops runs that give way to trials of a higher priority: they checkpoint and go back to the queue.
void Coordinator::preempt(const std::vector<RunId>& runs, int priority) {
  if (runs.empty()) return;
  const std::string reason = fmt::format("it gives way to priority {}", priority);
  commit(
      [runs, reason](Database& db) {
        storage::TrialStore{db}.ask_to_stop(runs, reason);
        return true;
      },
      [this, runs, reason](std::exception_ptr error, bool) {
        if (error) return fleet_.not_preempted(runs);
        stop_runs(runs, reason);
      });
}

/// Writes down why trials wait, a reason for each shape, where that has changed.
void Coordinator::explain_waiting() {
  if (!std::exchange(explain_now_, false)) return;
  std::map<storage::ShapeId, std::string> changed;
  std::map<storage::ShapeId, Milliseconds> takes;
  if (fleet_.note_time(clock_.steady())) takes = queue_.shortest();
  for (auto& [shape, demand] : queue_.waiting_shapes()) {
    if (const auto known = takes.find(shape); known != takes.end()) demand.takes = known->second;
    if (std::string reason = why_waiting(demand, fleet_.workers()); waiting_reasons_[shape] != reason)
      changed.emplace(shape, std::move(reason));
  }
  if (changed.empty()) return;
  commit(
      [changed](Database& db) {
        storage::QueueStore store{db};
        for (const auto& [shape, reason] : changed) store.set_waiting(shape, reason);
        return true;
      },
      [this, changed](std::exception_ptr error, bool) {
        if (error) {
          explain_due_ = true;
          return;
        }
        for (const auto& [shape, reason] : changed) waiting_reasons_[shape] = reason;
        feed_.publish(storage::Change{});
      });
}

/// A run whose worker left before it could be told of it: nobody executes it, so its lease need not run out.
void Coordinator::give_back(RunId run) {
  commit([this, run](Database& db) { return return_unassigned(db, run, clock_.moment()); },
         [this](std::exception_ptr error, const Reported& report) {
           if (error) return;
           apply(nullptr, report);
           look_at_queue();
         });
}

}  // namespace abl::scheduler
