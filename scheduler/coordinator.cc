// SPDX-License-Identifier: Apache-2.0
#include "scheduler/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/fail_point.h"
#include "base/log.h"
#include "config/document/result_version.h"
#include "scheduler/budget.h"
#include "scheduler/dispatch.h"
#include "scheduler/fleet.h"
#include "scheduler/seed_growth.h"
#include "scheduler/status.h"
#include "storage/breaker_store.h"
#include "storage/count_store.h"
#include "storage/due_versions.h"
#include "storage/queue_store.h"
#include "storage/sqlite_error.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SchedulerMessage;
using storage::Database;
using storage::RunId;

constexpr std::chrono::seconds kTidyEvery{1};  // more goes then than can come in that time

/// A full disk, a file that is gone or damaged: not the fault of what was to be stored.
bool is_of_the_store(std::exception_ptr error) {
  return error && !storage::is_of_what_is_stored(static_cast<Code>(to_status(error).error_code()));
}

SchedulerMessage stop_message(RunId run, const std::string& reason) {
  SchedulerMessage message;
  message.mutable_stop()->set_run(run);
  message.mutable_stop()->set_reason(reason);
  return message;
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

/// Runs `work` as one job of the writer, and `then(error, result)` after its commit.
template <class Work, class Then>
void Coordinator::commit(Work work, Then then) {
  using Result = std::invoke_result_t<Work, Database&>;
  const auto result = std::make_shared<Result>();
  writer_.post([work = std::move(work), result](Database& db) { *result = work(db); },
               [this, result, then = std::move(then)](std::exception_ptr error) {
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
                 if (error) *result = Result{};  // the job may have had one, which is undone
                 then(error, *result);
               });
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

// --- sweeps ---

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

// --- workers ---

void Coordinator::drain(const std::string& worker, const std::optional<std::string>& reason,
                        bool stop_running, Answer<> answer) {
  struct Drained {
    std::vector<RunId> runs;
    std::optional<std::string> reason;
  };
  commit(
      [this, worker, reason, stop_running](Database& db) {
        auto why = reason;
        if (why && why->empty()) why = storage::WorkerStore{db}.drained(worker).value_or("");  // it stays
        storage::WorkerStore{db}.set_drained(worker, why);
        if (!reason) storage::WorkerStore{db}.set_quarantine(worker, std::nullopt);
        std::vector<RunId> runs;
        if (stop_running) runs = storage::TrialStore{db}.under_way_on(worker);
        storage::TrialStore{db}.ask_to_stop(runs, kDrained);
        return Drained{std::move(runs), std::move(why)};
      },
      [this, worker, answer = std::move(answer)](std::exception_ptr error, const Drained& drained) {
        answer(error);
        if (error) return;
        fleet_.set_drained(worker, drained.reason);
        if (!drained.reason) {
          quarantine_.forgive(worker);
          fleet_.set_quarantine(worker, std::nullopt, {});
        }
        stop_runs(drained.runs, kDrained);
        log_info({{"worker", worker}}, "worker {} {}{}", worker,
                 drained.reason ? "is drained" : "gets trials again",
                 drained.reason && !drained.reason->empty() ? ": " + *drained.reason : "");
        for (const RunId run : fleet_.recall_of(worker)) call_back(run);
        feed_.publish(storage::Change{});
        explain_now_ = true;
        look_at_queue();
      });
}

std::shared_ptr<const Session> Coordinator::open_session(ablate::v1::Hello hello_message,
                                                         std::shared_ptr<WorkerChannel> channel) {
  check_hello(hello_message, kLowestProtocol, kHighestProtocol);
  auto session =
      std::make_shared<const Session>(Session{next_session_++, std::move(hello_message), std::move(channel)});
  hello(session);
  return session;
}

void Coordinator::hello(const std::shared_ptr<const Session>& session) {
  const std::string& name = session->hello.name();
  struct Result {
    std::vector<Reported> reports;
    std::vector<storage::RunUnderWay> under_way;
    std::optional<std::string> drained;
    std::optional<storage::WorkerRecord::Quarantine> quarantine;
  };
  commit(
      [this, session, name](Database& db) {
        if (const auto other = fleet_.session_of(name);
            other && other->hello.instance() != session->hello.instance())
          throw Error{Code::kAlreadyExists,
                      fmt::format("worker name {} is already connected from {}: pass another --name", name,
                                  other->hello.host())};
        newest_session_[name] = session->id;
        const Moment now = clock_.moment();
        auto reports = settle(db, session->hello, now, policy_.expires(now.steady));
        storage::WorkerStore{db}.upsert(worker_record(session->hello, now.wall));
        return Result{std::move(reports), storage::TrialStore{db}.runs_under_way_on(name),
                      storage::WorkerStore{db}.drained(name), storage::WorkerStore{db}.quarantine(name)};
      },
      [this, session, name](std::exception_ptr error, const Result& result) {
        const std::vector<Reported>& reports = result.reports;
        if (error)
          return session->channel->close(
              {static_cast<Code>(to_status(error).error_code()), message_of(error)});
        std::map<RunId, storage::RunUnderWay> continuing;
        for (const Reported& report : reports)
          if (!report.ended && report.fenced.empty()) continuing[report.run] = {.id = report.run};
        for (const storage::RunUnderWay& run : result.under_way)
          if (const auto found = continuing.find(run.id); found != continuing.end()) found->second = run;
        std::vector<storage::RunUnderWay> runs;
        for (auto& [id, run] : continuing) runs.push_back(std::move(run));
        if (const auto replaced = fleet_.add(session, runs, clock_.steady()))
          replaced->channel->close(
              {Code::kAborted, fmt::format("another session of worker {} has taken over", name)});
        fleet_.set_drained(name, result.drained);
        if (const auto& stored = result.quarantine) {
          if (!quarantine_.contains(name)) quarantine_.set(name, stored->why, stored->back_off);
          const Milliseconds left{stored->until - clock_.now()};  // the wall clock may have been set
          fleet_.set_quarantine(name, stored->why,
                                clock_.steady() + std::clamp(left, Milliseconds{}, stored->back_off));
        }
        count_workers();
        log_info({{"worker", name}, {"host", session->hello.host()}},
                 "worker {} on {} is connected: {} slots, {} runs continue", name, session->hello.host(),
                 session->hello.slots_size(), runs.size());
        SchedulerMessage welcome;
        welcome.mutable_welcome()->set_protocol(
            std::min(kHighestProtocol, session->hello.highest_protocol()));
        welcome.mutable_welcome()->set_heartbeat_ms(static_cast<std::uint32_t>(policy_.heartbeat.count()));
        welcome.mutable_welcome()->set_lease_ms(static_cast<std::uint32_t>(policy_.ttl.count()));
        welcome.mutable_welcome()->set_store_id(store_id_);
        welcome.mutable_welcome()->set_takes_several(true);
        session->channel->send(std::move(welcome));
        for (const Reported& report : reports) apply(session.get(), report);
        feed_.publish(storage::Change{});
        explain_now_ = true;
        look_at_queue();
      });
}

void Coordinator::receive(const std::shared_ptr<const Session>& session,
                          const ablate::v1::WorkerMessage& message) {
  switch (message.body_case()) {
    case ablate::v1::WorkerMessage::kHeartbeat:
      return heartbeat(session, message.heartbeat());
    case ablate::v1::WorkerMessage::kBatch:
      return batch(session, message.batch());
    case ablate::v1::WorkerMessage::kRefused:
      return refusal(session, message.refused());
    case ablate::v1::WorkerMessage::kHello:
      return session->channel->close({Code::kInvalidArgument, "a second Hello in one session"});
    case ablate::v1::WorkerMessage::BODY_NOT_SET:
      return;  // a newer worker's message: it has no meaning here
  }
}

/// False for what arrives from a session that another has replaced.
bool Coordinator::current(const Session& session) const {
  const auto newest = newest_session_.find(session.hello.name());
  return newest != newest_session_.end() && newest->second == session.id;
}

void Coordinator::heartbeat(const std::shared_ptr<const Session>& session,
                            const ablate::v1::Heartbeat& heartbeat) {
  const Ailments ailments = Ailments::of(heartbeat);
  commit(
      [this, session, ailments,
       runs = std::vector<RunId>{heartbeat.runs().begin(), heartbeat.runs().end()}](Database& db) {
        if (!current(*session)) return std::vector<Reported>{};
        storage::WorkerStore{db}.heartbeat(session->hello.name(), clock_.now(),
                                           fleet_.trouble(session->id, ailments));
        return renew(db, session->hello.name(), runs, policy_.expires(clock_.steady()));
      },
      [this, session, ailments, draining = heartbeat.draining()](std::exception_ptr error,
                                                                 const std::vector<Reported>& reports) {
        fleet_.heard(session->id, clock_.steady());  // also when the store is full: the worker lives
        const bool drains = draining && fleet_.drain(session->id);
        const bool ails = fleet_.ails(session->id, ailments);
        if (ails) {
          if (const std::string text = ailments.text(); !text.empty())
            log_warning({{"worker", session->hello.name()}}, "worker {} is unhealthy: {}",
                        session->hello.name(), text);
          else
            log_info({{"worker", session->hello.name()}}, "worker {} is well again", session->hello.name());
          feed_.publish(storage::Change{});
        }
        if (error) return;
        for (const Reported& report : reports) apply(session.get(), report);
        if (!ails && !drains) return;
        explain_now_ = true;
        look_at_queue();
      });
}

void Coordinator::batch(const std::shared_ptr<const Session>& session, const ablate::v1::RunBatch& batch) {
  const auto arrived = std::chrono::steady_clock::now();
  figures_.batches.add();
  figures_.batch_bytes.add(batch.ByteSizeLong());
  for (const auto& series : batch.series())
    figures_.points.add(static_cast<std::uint64_t>(series.values_size()));
  commit(
      [this, session, batch](Database& db) {
        if (!current(*session)) return Reported{};
        const bool first = fleet_.first_batch(session->id, batch.run());
        Reported report = store_batch(db, session->hello.name(), batch, first, clock_.moment(),
                                      batch.has_ended() ? fleet_.beside(batch.run(), clock_.steady()) : 0);
        judge(db, session->hello.name(), batch.series_size() > 0, report);
        return report;
      },
      [this, session, arrived, run = batch.run(), measured = batch.series_size() > 0](
          std::exception_ptr error, const Reported& report) {
        if (!error) figures_.batch_seconds.add(std::chrono::steady_clock::now() - arrived);
        if (error)  // not acknowledged: the worker keeps it and sends it again in its next session
          return session->channel->close({static_cast<Code>(to_status(error).error_code()),
                                          fmt::format("run {}: {}", run, message_of(error))});
        if (!report.pack.empty()) queue_.put_memory(report.pack, report.memory_bytes);
        if (report.took) queue_.ran(report.claimants, *report.took);
        const bool probe = report.ended && fleet_.is_probe(run);
        apply(session.get(), report);
        learn(session->hello.name(), measured, probe, report);
        if (report.ended || report.through) look_at_queue();
      });
}

void Coordinator::refusal(const std::shared_ptr<const Session>& session, const ablate::v1::Refused& refused) {
  struct Result {
    Reported report;
    storage::TrialId trial = 0;
  };
  commit(
      [this, session, refused](Database& db) {
        if (!current(*session)) return Result{};
        Result result{.report = store_refusal(db, session->hello.name(), refused, clock_.moment())};
        judge(db, session->hello.name(), false, result.report);
        if (result.report.trial_state != storage::TrialState::kQueued) return result;
        result.trial = storage::TrialStore{db}.run(refused.run()).trial;
        storage::TrialStore{db}.set_waiting(
            result.trial, fmt::format("worker {} refused it: {}", session->hello.name(), refused.reason()));
        return result;
      },
      [this, session](std::exception_ptr error, const Result& result) {
        if (error) return;  // its lease runs out instead
        const Time now = clock_.steady();
        if (result.trial != 0) queue_.refuse(result.trial, session->id, now, now + policy_.refusal);
        apply(session.get(), result.report);
        follow_holds(result.report);
        look_at_queue();
      });
}

void Coordinator::disconnected(const std::shared_ptr<const Session>& session) {
  commit(
      [this, session](Database& db) {
        if (current(*session)) storage::WorkerStore{db}.set_connected(session->hello.name(), false);
        return true;
      },
      [this, session](std::exception_ptr, bool) {
        if (!fleet_.remove(session->id)) return;
        quarantine_.gone(session->hello.name());
        count_workers();
        log_info({{"worker", session->hello.name()}},
                 "worker {} is disconnected; its runs are requeued when their leases expire",
                 session->hello.name());
        feed_.publish(storage::Change{});
        explain_now_ = true;
        look_at_queue();
      });
}

void Coordinator::close_sessions() {
  commit([](Database&) { return true; },
         [this](std::exception_ptr, bool) {
           for (const auto& session : fleet_.all())
             session->channel->close({Code::kUnavailable, "the scheduler stops"});
         });
}

// --- time and the queue ---

void Coordinator::tick() {
  struct Result {
    std::vector<Reported> expired;
    bool was_away = false;
    Time looked{};       // when the job ran: a commit may take long
    int read_after = 0;  // so many losses of the queue it was read anew
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
        if (now - last_tidied_ >= kTidyEvery && queue_.tries_some())
          storage::BreakerStore{db}.got_through_before(clock_.now() - kCanaryTime);
        // Heartbeats could not be heard while this machine slept, nor stored while the disk was full: nobody
        // is to blame.
        const bool was_away = store_failed_ || policy_.was_away(last_tick_, now);
        if (!was_away) return Result{expire(db, {clock_.now(), now}), false, now, lost};
        storage::TrialStore{db}.renew_all(policy_.expires_after_restart(now));
        return Result{{}, true, now, lost};
      },
      [this](std::exception_ptr error, const Result& result) {
        note_standing();
        if (error) return;  // as if it had not looked: the next look sees the gap
        if (queue_lost_ == result.read_after) queue_lost_ = 0;
        for (const auto& [level, from] : std::exchange(holds_left_, {})) hold_on(level, from);
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
}

void Coordinator::close_silent(const std::shared_ptr<const Session>& session) {
  log_warning({{"worker", session->hello.name()}},
              "no heartbeat from worker {} for {} ms: closing its session", session->hello.name(),
              policy_.ttl.count());
  session->channel->close({Code::kUnavailable, "lease expired without a heartbeat"});
  fleet_.remove(session->id);  // now: the next look at the queue must not count on it
  quarantine_.gone(session->hello.name());
  count_workers();
  disconnected(session);
  feed_.publish(storage::Change{});
}

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
  Picks picked = pick(queue_, fleet_, policy_);
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
  if (!session) return give_back(assign.run());
  fleet_.occupy(session->id, assign.run(), pick.placement.slots,
                {.priority = pick.priority,
                 .resumable = !pick.demand.command,
                 .quick = pick.quick,
                 .memory_bytes = pick.demand.packs ? pick.demand.memory_bytes : 0,
                 .beside = pick.placement.beside},
                clock_.steady());
  quarantine_.began(session->hello.name(), queue_.claimants(assign.trial()));
  figures_.leases.add();
  log_info({{"run", assign.run()},
            {"trial", assign.trial()},
            {"attempt", assign.attempt()},
            {"worker", session->hello.name()}},
           "run {} (trial {}, attempt {}) goes to {}", assign.run(), assign.trial(), assign.attempt(),
           session->hello.name());
  SchedulerMessage message;
  *message.mutable_assign() = assign;
  fail_point(FailPoint::kBeforeAssignment);
  session->channel->send(std::move(message));
  fail_point(FailPoint::kAfterAssignment);
}

/// Its worker hands a run back that was leased ahead, if it has not begun meanwhile.
void Coordinator::call_back(RunId run) {
  SchedulerMessage message = stop_message(run, kRecalled);
  message.mutable_stop()->set_only_waiting(true);
  if (const auto session = fleet_.session_with(run)) session->channel->send(std::move(message));
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
  for (const auto& [shape, demand] : queue_.waiting_shapes())
    if (std::string reason = why_waiting(demand, fleet_.workers()); waiting_reasons_[shape] != reason)
      changed.emplace(shape, std::move(reason));
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

// --- failures of many runs ---

/// In the job that stores what a run says: what that means for trials that have something in common with its
/// own. `measured`: it has reported a number.
void Coordinator::judge(Database& db, const std::string& worker, bool measured, Reported& report) {
  if (report.trial == 0) return;
  report.claimants = queue_.claimants(report.trial);
  if (report.ended) refresh_budgets_of(db, report.trial, clock_.now());
  if (report.trial_state == storage::TrialState::kCompleted ||
      report.trial_state == storage::TrialState::kFailed || report.trial_state == storage::TrialState::kHeld)
    grow_after(db, report.trial, clock_.now());
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

// --- after the commit ---

/// What a stored report means for the worker (nullptr: not connected), its slots and the watchers.
void Coordinator::apply(const Session* session, const Reported& report) {
  if (!report.note.empty())
    log_info({{"run", report.run},
              {"trial", report.trial},
              {"attempt", report.attempt},
              {"sweep", report.sweeps.empty() ? std::string_view{} : report.sweeps.front()},
              {"worker", session ? std::string_view{session->hello.name()} : std::string_view{}}},
             "{}", report.note);
  if (report.state) figures_.ended.at(static_cast<std::size_t>(*report.state)).add();
  if (report.state == storage::RunState::kFailed)
    figures_.failed.at(static_cast<std::size_t>(report.failure)).add();
  SchedulerMessage message;
  if (session && report.stored > 0) {
    message.mutable_ack()->set_run(report.run);
    message.mutable_ack()->set_seq(report.stored);
    fail_point(FailPoint::kBeforeAcknowledgement);
    session->channel->send(message);
    fail_point(FailPoint::kAfterAcknowledgement);
  }
  if (session && !report.stop.empty()) session->channel->send(stop_message(report.run, report.stop));
  if (session && !report.fenced.empty()) {
    log_warning({{"run", report.run}, {"worker", session->hello.name()}}, "run {} on {} is fenced: {}",
                report.run, session->hello.name(), report.fenced);
    message.mutable_fenced()->set_run(report.run);
    message.mutable_fenced()->set_reason(report.fenced);
    session->channel->send(message);
  }
  if (!report.wrong_data.empty() || report.wrong_weights) explain_now_ = true;
  if (session && !report.wrong_data.empty())
    fleet_.refuse_data(session->id, report.wrong_data, report.fenced);
  if (session && report.wrong_weights)
    fleet_.refuse_weights(session->id, *report.wrong_weights, report.fenced);
  if (report.ended || !report.fenced.empty()) fleet_.release(report.run, clock_.steady());
  publish(report.sweeps, report.run);
}

void Coordinator::stop_runs(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    if (const auto session = fleet_.session_with(run)) session->channel->send(stop_message(run, reason));
}

void Coordinator::publish(const std::vector<std::string>& sweeps, RunId run) {
  for (const std::string& sweep : sweeps) feed_.publish(storage::Change{sweep, run});
  if (sweeps.empty() && run != 0)
    feed_.publish(storage::Change{{}, run});  // its sweep is cancelled, its log may be followed
}

}  // namespace abl::scheduler
