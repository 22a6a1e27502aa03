// SPDX-License-Identifier: Apache-2.0
#include "scheduler/coordinator.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "config/document/result_version.h"
#include "scheduler/fleet.h"
#include "scheduler/status.h"
#include "storage/count_store.h"
#include "storage/due_versions.h"
#include "storage/sqlite_error.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SchedulerMessage;
using storage::Database;
using storage::RunId;

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
    : writer_{writer}, clock_{clock}, policy_{policy}, feed_{feed}, last_tick_{clock.steady()} {
  policy_.check();
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
                   feed_.publish({});
                 }
                 if (!error && std::exchange(store_failed_, false)) {
                   log_info("the store can be written again");
                   trouble_.lock()->clear();
                   feed_.publish({});
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
    storage::TrialStore{db}.limit_back_offs(clock_.steady() + storage::TrialStore::kLongestBackOff);
    store_id_ = db.store_id();
    storage::WorkerStore{db}.disconnect_all();
    storage::DueVersions{db}.update(config::newest_result_version(), [](const std::string& document) {
      return config::result_version(nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false));
    });
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
           log_info("sweep {}: {}", sweep, what);
           publish({sweep});
           dispatch_queue();
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

// --- workers ---

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
        return reports;
      },
      [this, session, name](std::exception_ptr error, const std::vector<Reported>& reports) {
        if (error)
          return session->channel->close(
              {static_cast<Code>(to_status(error).error_code()), message_of(error)});
        std::vector<RunId> runs;
        for (const Reported& report : reports)
          if (!report.ended && report.fenced.empty()) runs.push_back(report.run);
        if (const auto replaced = fleet_.add(session, runs, clock_.steady()))
          replaced->channel->close(
              {Code::kAborted, fmt::format("another session of worker {} has taken over", name)});
        log_info("worker {} on {} is connected: {} slots, {} runs continue", name, session->hello.host(),
                 session->hello.slots_size(), runs.size());
        SchedulerMessage welcome;
        welcome.mutable_welcome()->set_protocol(
            std::min(kHighestProtocol, session->hello.highest_protocol()));
        welcome.mutable_welcome()->set_heartbeat_ms(static_cast<std::uint32_t>(policy_.heartbeat.count()));
        welcome.mutable_welcome()->set_lease_ms(static_cast<std::uint32_t>(policy_.ttl.count()));
        welcome.mutable_welcome()->set_store_id(store_id_);
        session->channel->send(std::move(welcome));
        for (const Reported& report : reports) apply(session.get(), report);
        feed_.publish({});
        dispatch_queue();
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
        if (draining) fleet_.drain(session->id);
        const bool news = fleet_.ails(session->id, ailments);
        if (news) {
          if (const std::string text = ailments.text(); !text.empty())
            log_warning("worker {} is unhealthy: {}", session->hello.name(), text);
          else
            log_info("worker {} is well again", session->hello.name());
          feed_.publish({});
        }
        if (error) return;
        for (const Reported& report : reports) apply(session.get(), report);
        if (news) dispatch_queue();
      });
}

void Coordinator::batch(const std::shared_ptr<const Session>& session, const ablate::v1::RunBatch& batch) {
  commit(
      [this, session, batch](Database& db) {
        if (!current(*session)) return Reported{};
        const bool first = fleet_.first_batch(session->id, batch.run());
        return store_batch(db, session->hello.name(), batch, first, clock_.moment());
      },
      [this, session, run = batch.run()](std::exception_ptr error, const Reported& report) {
        if (error)  // not acknowledged: the worker keeps it and sends it again in its next session
          return session->channel->close({static_cast<Code>(to_status(error).error_code()),
                                          fmt::format("run {}: {}", run, message_of(error))});
        apply(session.get(), report);
        if (report.ended) dispatch_queue();
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
        if (!result.report.sweeps.empty()) result.trial = storage::TrialStore{db}.run(refused.run()).trial;
        return result;
      },
      [this, session, reason = refused.reason()](std::exception_ptr error, const Result& result) {
        if (error) return;  // its lease runs out instead
        if (result.trial != 0)
          fleet_.refused(session->id, result.trial, reason, clock_.steady() + policy_.refusal);
        apply(session.get(), result.report);
        dispatch_queue();
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
        log_info("worker {} is disconnected; its runs are requeued when their leases expire",
                 session->hello.name());
        feed_.publish({});
        dispatch_queue();
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
    Time looked{};  // when the job ran: a commit may take long
  };
  commit(
      [this](Database& db) {
        const Time now = clock_.steady();
        if (store_failed_)
          db.execute("UPDATE store SET id = id");  // an empty commit succeeds on a full disk too
        // Heartbeats could not be heard while this machine slept, nor stored while the disk was full: nobody
        // is to blame.
        const bool was_away = store_failed_ || policy_.was_away(last_tick_, now);
        if (!was_away) return Result{expire(db, {clock_.now(), now}), false, now};
        storage::TrialStore{db}.renew_all(policy_.expires_after_restart(now));
        return Result{{}, true, now};
      },
      [this](std::exception_ptr error, const Result& result) {
        if (error) return;  // as if it had not looked: the next look sees the gap
        const Time now = last_tick_ = result.looked;
        if (result.was_away)
          for (const auto& session : fleet_.all()) fleet_.heard(session->id, clock_.steady());
        for (const Reported& report : result.expired) {
          const auto session = fleet_.session_with(report.run);
          apply(session.get(), report);
          if (session)
            close_silent(session);  // when it comes back, its Hello says whether it still has the run
        }
        for (const auto& session : fleet_.silent(policy_, now)) close_silent(session);
        dispatch_queue();
      });
}

void Coordinator::close_silent(const std::shared_ptr<const Session>& session) {
  log_warning("no heartbeat from worker {} for {} ms: closing its session", session->hello.name(),
              policy_.ttl.count());
  session->channel->close({Code::kUnavailable, "lease expired without a heartbeat"});
  fleet_.remove(session->id);  // now: the next look at the queue must not count on it
  disconnected(session);
  feed_.publish({});
}

void Coordinator::dispatch_queue() {
  if (dispatching_) {
    dispatch_again_ = true;
    return;
  }
  dispatching_ = true;
  commit(
      [this](Database& db) {
        return dispatch(db, fleet_.workers(clock_.steady()), waiting_reasons_, policy_, clock_.moment());
      },
      [this](std::exception_ptr error, const Dispatch& result) {
        dispatching_ = false;
        if (error) return;  // the next tick tries again
        waiting_reasons_ = result.reasons;
        for (const Dispatched& dispatched : result.assignments) {
          const auto session = fleet_.session(dispatched.session);
          if (!session) {
            give_back(dispatched.assign.run());
            continue;
          }
          fleet_.occupy(session->id, dispatched.assign.run(),
                        {dispatched.assign.slots().begin(), dispatched.assign.slots().end()});
          log_info("run {} (trial {}, attempt {}) goes to {}", dispatched.assign.run(),
                   dispatched.assign.trial(), dispatched.assign.attempt(), session->hello.name());
          SchedulerMessage message;
          *message.mutable_assign() = dispatched.assign;
          session->channel->send(std::move(message));
        }
        publish(result.sweeps);
        if (std::exchange(dispatch_again_, false)) dispatch_queue();
      });
}

/// A run whose worker left before it could be told of it: nobody executes it, so its lease need not run out.
void Coordinator::give_back(RunId run) {
  commit([this, run](Database& db) { return return_unassigned(db, run, clock_.moment()); },
         [this](std::exception_ptr error, const Reported& report) {
           if (error) return;
           apply(nullptr, report);
           dispatch_queue();
         });
}

// --- after the commit ---

/// What a stored report means for the worker (nullptr: not connected), its slots and the watchers.
void Coordinator::apply(const Session* session, const Reported& report) {
  if (!report.note.empty()) log_info("{}", report.note);
  SchedulerMessage message;
  if (session && report.stored > 0) {
    message.mutable_ack()->set_run(report.run);
    message.mutable_ack()->set_seq(report.stored);
    session->channel->send(message);
  }
  if (session && !report.stop.empty()) session->channel->send(stop_message(report.run, report.stop));
  if (session && !report.fenced.empty()) {
    log_warning("run {} on {} is fenced: {}", report.run, session->hello.name(), report.fenced);
    message.mutable_fenced()->set_run(report.run);
    message.mutable_fenced()->set_reason(report.fenced);
    session->channel->send(message);
  }
  if (session && !report.wrong_data.empty())
    fleet_.refuse_data(session->id, report.wrong_data, report.fenced);
  if (session && report.wrong_weights)
    fleet_.refuse_weights(session->id, *report.wrong_weights, report.fenced);
  if (report.ended || !report.fenced.empty()) fleet_.release(report.run);
  publish(report.sweeps, report.run);
}

void Coordinator::stop_runs(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    if (const auto session = fleet_.session_with(run)) session->channel->send(stop_message(run, reason));
}

void Coordinator::publish(const std::vector<std::string>& sweeps, RunId run) {
  for (const std::string& sweep : sweeps) feed_.publish({sweep, run});
  if (sweeps.empty() && run != 0)
    feed_.publish({{}, run});  // its sweep is cancelled, its log may be followed
}

}  // namespace abl::scheduler
