// SPDX-License-Identifier: Apache-2.0
#include "scheduler/coordinator.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "config/document/result_version.h"
#include "scheduler/budget.h"
#include "scheduler/seed_growth.h"
#include "scheduler/status.h"
#include "scheduler/tuning.h"
#include "storage/breaker_store.h"
#include "storage/count_store.h"
#include "storage/data_pins.h"
#include "storage/due_versions.h"
#include "storage/probe_store.h"
#include "storage/sqlite_error.h"
#include "storage/sweep_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using storage::Database;
using storage::RunId;

constexpr std::chrono::seconds kTidyEvery{1};  // more goes then than can come in that time

/// A full disk, a file that is gone or damaged: not the fault of what was to be stored.
bool is_of_the_store(std::exception_ptr error) {
  return error && !storage::is_of_what_is_stored(static_cast<Code>(to_status(error).error_code()));
}

}  // namespace

Coordinator::Coordinator(storage::Writer& writer, const Clock& clock, const LeasePolicy& policy,
                         ChangeFeed& feed)
    : writer_{writer},
      clock_{clock},
      policy_{policy},
      feed_{feed},
      checks_queue_{std::getenv("ABLATE_CHECK_QUEUE") != nullptr},
      quarantine_{policy.quarantine},
      last_tick_{clock.steady()} {
  policy_.check();
  writer_.observe([this](Database& db, const storage::Touched& touched) { follow_commit(db, touched); });
}

/// Whether anything can be stored, as people hear of it.
void Coordinator::note_store(std::exception_ptr error) {
  if (is_of_the_store(error) && !std::exchange(store_failed_, true)) {
    log_error("cannot store anything: {}", message_of(error));
    *trouble_.lock() = message_of(error);
    feed_.publish(storage::Change{});
  }
  if (!error && std::exchange(store_failed_, false)) {
    log_info("the store can be written again");
    trouble_.lock()->clear();
    feed_.publish(storage::Change{});
  }
}

void Coordinator::recover() {
  writer_.call([this](Database& db) {
    // what is stored was measured by another clock: an earlier start's, perhaps before the machine was
    // started
    storage::TrialStore{db}.renew_all(policy_.expires_after_restart(clock_.steady()));
    storage::TrialStore{db}.limit_back_offs(clock_.steady());
    store_id_ = db.store_id();
    storage::WorkerStore{db}.disconnect_all();
    storage::DueVersions{db}.update(config::newest_result_version(), [](const std::string& document) {
      return config::result_version(nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false));
    });
    storage::TrialStore{db}.end_back_offs(clock_.steady());
    storage::BreakerStore breaker{db};
    for (const storage::SweepLevel& level : breaker.held())  // it may have ended in the middle of that
      for (std::optional<storage::HoldFrom> from{std::in_place}; from;)
        from = breaker.hold(level, *from, clock_.now());
  });
  writer_.call([this](Database& db) {
    load(queue_, db, clock_.steady());
    recovered_ = true;
    note_data(storage::DataPins{db}.all());
  });
  explain_due_ = true;
}

void Coordinator::follow_commit(Database& db, const storage::Touched& touched) {
  explain_due_ = true;
  feed_.publish(touched);
  try {
    follow(queue_, db, touched, clock_.steady());
    if (checks_queue_ && recovered_ && queue_lost_ == 0) check_queue(db);
  } catch (const std::exception& error) {
    ++queue_lost_;
    log_error("cannot read the queue: {}", error.what());
  }
}

/// Ends the program where the queue is not what is stored.
void Coordinator::check_queue(Database& db) const {
  WorkQueue stored;
  load(stored, db, clock_.steady());
  std::vector<std::string> here = queue_.dump(), there = stored.dump(), differing;
  if (dispatching_)  // slots count as in use before their lease is stored
    for (auto* lines : {&here, &there})
      std::erase_if(*lines, [](const std::string& line) { return line.starts_with("sweep "); });
  std::ranges::set_symmetric_difference(here, there, std::back_inserter(differing));
  if (differing.empty()) return;
  for (const std::string& line : differing)
    log_error("the queue is not what is stored: {}: {}",
              std::ranges::binary_search(here, line) ? "only in memory" : "only in the store", line);
  std::abort();
}

std::pair<std::vector<std::string>, std::vector<std::string>> Coordinator::queue_and_store() {
  return writer_.call([this](Database& db) {
    WorkQueue stored;
    load(stored, db, clock_.steady());
    return std::pair{queue_.dump(), stored.dump()};
  });
}

void Coordinator::change(const std::string& sweep, const char* what,
                         std::function<Stops(Database&, Time)> work, Answer<> answer) {
  commit([this, work = std::move(work)](Database& db) { return work(db, clock_.now()); },
         [this, sweep, what, answer = std::move(answer)](std::exception_ptr error, const Stops& stops) {
           answer(error);
           if (error) return;
           stop_runs(stops.runs, stops.reason);
           log_info({{"sweep", sweep}}, "sweep {}: {}", sweep, what);
           publish({sweep});
           explain_now_ = true;
           look_at_queue();
         });
}

void Coordinator::store_counts(std::map<std::string, std::map<std::string, double>> counts, Answer<> answer) {
  commit(
      [counts = std::move(counts)](Database& db) {
        storage::CountStore store{db};
        for (const auto& [model, values] : counts) store.insert(model, values);
        return true;
      },
      [answer = std::move(answer)](std::exception_ptr error, bool) { answer(error); });
}

void Coordinator::keep_calibrations(std::vector<storage::Calibration> calibrations, Answer<> answer) {
  commit(
      [calibrations = std::move(calibrations)](Database& db) {
        for (const auto& calibration : calibrations) storage::MeasuredStore{db}.keep(calibration);
        return true;
      },
      [answer = std::move(answer)](std::exception_ptr error, bool) { answer(error); });
}

void Coordinator::keep_predictions(std::map<std::string, double> seconds, int gpus, Answer<> answer) {
  commit(
      [seconds = std::move(seconds), gpus](Database& db) {
        storage::MeasuredStore{db}.predict(seconds, gpus);
        return true;
      },
      [answer = std::move(answer)](std::exception_ptr error, bool) { answer(error); });
}

void Coordinator::put_probes(RunId run, std::vector<views::ProbeRecord> found, Answer<> answer) {
  commit(
      [run, found = std::move(found), now = clock_.now()](Database& db) {
        storage::ProbeStore{db}.expect_ended(run);
        const auto trial = storage::TrialStore{db}.run(run).trial;
        for (const auto& probe : found)
          storage::ProbeStore{db}.put(run, probe.found, probe.step, probe.pictures, now);
        return storage::SweepStore{db}.names_of(trial);
      },
      [this, run, answer = std::move(answer)](std::exception_ptr error,
                                              const std::vector<std::string>& sweeps) {
        if (!error) publish(sweeps, run);
        answer(error);
      });
}

void Coordinator::tick() {
  struct Result {
    std::vector<Reported> expired;
    bool was_away = false;
    Time looked{};                              // when the job ran: a commit may take long
    int read_after = 0;                         // so many losses of the queue it was read anew
    std::map<std::string, std::string> pins{};  // of data sets: as many as there are names
  };
  commit(
      [this](Database& db) {
        const Time now = clock_.steady();
        if (store_failed_) {
          db.execute("UPDATE store SET id = id");      // an empty commit succeeds on a full disk too
          storage::TrialStore{db}.end_back_offs(now);  // which could not be said when they ended
        }
        const int lost = queue_lost_;
        if (lost > 0) load(queue_, db, now);
        for (const storage::TrialId trial : queue_.wake(now))
          storage::TrialStore{db}.set_waiting(trial, queue_.why_elsewhere(trial));
        if (now - last_tidied_ >= kTidyEvery) storage::TrialStore{db}.forget_transitions();
        if (now - last_tidied_ >= kTidyEvery) refresh_budgets(db, clock_.now());
        if (now - last_tidied_ >= kTidyEvery) settle_tunings(db, clock_.now());
        if (now - last_tidied_ >= kTidyEvery && queue_.tries_some())
          storage::BreakerStore{db}.got_through_before(clock_.now() - kCanaryTime);
        // Heartbeats could not be heard while this machine slept, nor stored while the disk was full: nobody
        // is to blame.
        const bool was_away = store_failed_ || policy_.was_away(last_tick_, now);
        if (!was_away) {
          Result result{expire(db, {clock_.now(), now}), false, now, lost, storage::DataPins{db}.all()};
          looks_due_ = grow_due(db, clock_.now());  // whatever ended a seed: a lease, a hold, an import
          return result;
        }
        storage::TrialStore{db}.renew_all(policy_.expires_after_restart(now));
        return Result{{}, true, now, lost, storage::DataPins{db}.all()};
      },
      [this](std::exception_ptr error, const Result& result) {
        note_standing();
        if (error) return;  // as if it had not looked: the next look sees the gap
        if (queue_lost_ == result.read_after) queue_lost_ = 0;
        for (const auto& [level, from] : std::exchange(holds_left_, {})) hold_on(level, from);
        grow_on();
        const Time now = last_tick_ = result.looked;
        if (now - last_tidied_ >= kTidyEvery) last_tidied_ = now;
        if (result.was_away)
          for (const auto& session : fleet_.all()) fleet_.heard(session->id, clock_.steady());
        figures_.expired.add(result.expired.size());
        for (const Reported& report : result.expired) {
          const auto session = fleet_.session_with(report.run);
          apply(session.get(), report);
          if (session)
            close_silent(session);  // when it comes back, its Hello says whether it still has the run
        }
        for (const auto& session : fleet_.silent(policy_, now)) close_silent(session);
        for (const RunId run : fleet_.recall_behind(now - 2 * policy_.quick)) call_back(run);
        explain_now_ = std::exchange(explain_due_, false) || explain_now_;
        explain_now_ = fleet_.end_rests(now) || explain_now_;
        note_data(result.pins);
        if (fleet_.note_time(now)) explain_now_ = true;  // what is left of a worker's time may be too little
        look_at_queue();
      });
}

/// For those who ask how things stand, who cannot look themselves.
void Coordinator::note_standing() {
  Figures::Standing standing{.at = std::chrono::steady_clock::now(), .queue = queue_.load()};
  standing.queued = queue_.size() - standing.queue.under_way;
  if (standing.queue.longest) standing.longest_wait = clock_.steady() - *standing.queue.longest;
  for (const WorkerState& worker : fleet_.workers()) {
    ++standing.connected;
    standing.unhealthy += worker.trouble.empty() ? 0 : 1;
    standing.drained += worker.drained ? 1 : 0;
    standing.stopping += worker.draining ? 1 : 0;
    standing.quarantined += worker.quarantine ? 1 : 0;
    for (const SlotState& slot : worker.slots) {
      ++(slot.busy ? standing.busy : standing.free);
      standing.ahead += static_cast<std::size_t>(slot.ahead);
    }
  }
  *figures_.standing.lock() = std::move(standing);
  if (!notes_needs_ || queue_lost_ > 0) return;
  Figures::Needs needs{.at = clock_.steady(), .waiting = queue_.waiting(), .workers = {}};
  for (const WorkerState& worker : fleet_.workers())
    needs.workers.push_back({worker.name, std::ranges::any_of(worker.slots, &SlotState::busy)});
  *figures_.needs.lock() = std::move(needs);
}

void Coordinator::publish(const std::vector<std::string>& sweeps, RunId run) {
  for (const std::string& sweep : sweeps) feed_.publish(storage::Change{sweep, run});
  if (sweeps.empty() && run != 0)
    feed_.publish(storage::Change{{}, run});  // its sweep is cancelled, its log may be followed
}

}  // namespace abl::scheduler
