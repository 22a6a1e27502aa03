// SPDX-License-Identifier: Apache-2.0
// What workers say, and what they are told.
#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <utility>

#include "base/fail_point.h"
#include "base/log.h"
#include "scheduler/coordinator.h"
#include "scheduler/dispatch.h"
#include "scheduler/status.h"
#include "storage/part_store.h"
#include "storage/queue_store.h"
#include "storage/trial_store.h"
#include "storage/worker_store.h"

namespace abl::scheduler {
namespace {

using ablate::v1::SchedulerMessage;
using storage::Database;
using storage::RunId;

/// A heartbeat that renews no lease and says nothing new is stored so often only: a fleet that waits for
/// work does not write to the disk all the time.
constexpr std::chrono::seconds kStoreIdleEvery{10};

SchedulerMessage stop_message(RunId run, const std::string& reason) {
  SchedulerMessage message;
  message.mutable_stop()->set_run(run);
  message.mutable_stop()->set_reason(reason);
  return message;
}

/// What a worker that comes back does of other workers' runs.
struct Parts {
  std::vector<storage::RunPart> here;  // of runs under way: its slots are theirs
  std::vector<RunId> over;             // that it still has, and is to drop
  std::vector<std::pair<std::string, ablate::v1::Assign>>
      to_start;  // that it has not been told of, or has lost
};

Parts settle_parts(Database& db, const ablate::v1::Hello& hello, const LeasePolicy& policy) {
  Parts parts{.here = storage::PartStore{db}.under_way_on(hello.name())};
  std::map<RunId, std::string> has{hello.parts().begin(), hello.parts().end()};
  for (const storage::RunPart& part : parts.here) {
    const auto named = has.extract(part.run);
    if (!named.empty() && named.mapped() == storage::TrialStore{db}.run(part.run).token) continue;
    if (!named.empty()) parts.over.push_back(part.run);  // of another results file
    for (auto& each : part_assignments(db, part.run, policy))
      if (each.first == hello.name()) parts.to_start.push_back(std::move(each));
  }
  for (const auto& [run, token] : has) parts.over.push_back(run);
  return parts;
}

}  // namespace

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
        if (stop_running)  // those that it takes part in stop as a whole
          for (const auto& part : storage::PartStore{db}.under_way_on(worker)) runs.push_back(part.run);
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
    Parts parts;
  };
  commit(
      [this, session, name](Database& db) {
        if (const auto other = fleet_.session_of(name);
            other && other->hello.instance() != session->hello.instance())
          throw Error{Code::kAlreadyExists,
                      fmt::format("worker name {} is already connected from {}: pass another --name", name,
                                  other->hello.host())};
        newest_session_[name] = session->id;
        stored_heartbeats_.erase(name);
        const Moment now = clock_.moment();
        auto reports = settle(db, session->hello, now, policy_.expires(now.steady));
        storage::WorkerStore{db}.upsert(worker_record(session->hello, now.wall));
        return Result{std::move(reports), storage::TrialStore{db}.runs_under_way_on(name),
                      storage::WorkerStore{db}.drained(name), storage::WorkerStore{db}.quarantine(name),
                      settle_parts(db, session->hello, policy_)};
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
        if (const auto replaced = fleet_.add(session, runs, clock_.steady(), result.parts.here))
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
        if (const std::string& release = session->hello.version(); release != ABLATE_VERSION)
          log_info(
              {{"worker", name}},
              "worker {} is of release {}, this scheduler of {}: they speak a protocol in common, runs go on",
              name, release.empty() ? "unknown" : release, ABLATE_VERSION);
        SchedulerMessage welcome;
        welcome.mutable_welcome()->set_protocol(
            std::min(kHighestProtocol, session->hello.highest_protocol()));
        welcome.mutable_welcome()->set_heartbeat_ms(static_cast<std::uint32_t>(policy_.heartbeat.count()));
        welcome.mutable_welcome()->set_lease_ms(static_cast<std::uint32_t>(policy_.ttl.count()));
        welcome.mutable_welcome()->set_store_id(store_id_);
        welcome.mutable_welcome()->set_takes_several(true);
        welcome.mutable_welcome()->set_depot_every_ms(static_cast<std::uint32_t>(depot_every_.count()));
        session->channel->send(std::move(welcome));
        for (const Reported& report : reports) apply(session.get(), report);
        for (const RunId run : result.parts.over) {
          SchedulerMessage fenced;
          fenced.mutable_fenced()->set_run(run);
          fenced.mutable_fenced()->set_reason("the run is over");
          fenced.mutable_fenced()->set_part(true);
          session->channel->send(std::move(fenced));
        }
        send_parts(result.parts.to_start);
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
    case ablate::v1::WorkerMessage::kPartEnded:
      return part_ended(session, message.part_ended());
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
  struct Result {
    std::vector<Reported> reports;
    std::optional<StoredHeartbeat> stored;
    std::vector<storage::Change> sampled{};
  };
  commit(
      [this, session, ailments, resources = heartbeat.resources(),
       runs = std::vector<RunId>{heartbeat.runs().begin(), heartbeat.runs().end()}](Database& db) {
        const std::string& name = session->hello.name();
        if (!current(*session)) return Result{};
        StoredHeartbeat news{clock_.steady(), fleet_.trouble(session->id, ailments)};
        const auto last = stored_heartbeats_.find(name);
        if (runs.empty() && resources.empty() && last != stored_heartbeats_.end() &&
            last->second.trouble == news.trouble && news.at - last->second.at < kStoreIdleEvery)
          return Result{};
        storage::WorkerStore{db}.heartbeat(name, clock_.now(), news.trouble);
        auto reports = renew(db, name, runs, policy_.expires(news.at));
        return Result{std::move(reports), std::move(news), store_resources(db, name, resources)};
      },
      [this, session, ailments, draining = heartbeat.draining(), places = heartbeat.data_places()](
          std::exception_ptr error, const Result& result) {
        fleet_.heard(session->id, clock_.steady());  // also when the store is full: the worker lives
        if (!error && result.stored && current(*session))
          stored_heartbeats_[session->hello.name()] = *result.stored;
        const bool drains = draining && fleet_.drain(session->id);
        const bool other_data = fleet_.has_data(session->id, places);
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
        for (const Reported& report : result.reports) apply(session.get(), report);
        for (const storage::Change& change : result.sampled) feed_.publish(change);
        if (!ails && !drains && !other_data) return;
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
        if (report.state == storage::RunState::kLost && report.trial_state == storage::TrialState::kQueued)
          if (const std::string why = queue_.why_refused(report.trial); !why.empty())
            storage::TrialStore{db}.set_waiting(report.trial, why);
        if (!batch.rendezvous().empty()) report.parts = part_assignments(db, batch.run(), policy_);
        return report;
      },
      [this, session, arrived, run = batch.run(), measured = batch.series_size() > 0](
          std::exception_ptr error, const Reported& report) {
        if (!error) figures_.batch_seconds.add(std::chrono::steady_clock::now() - arrived);
        if (error)  // not acknowledged: the worker keeps it and sends it again in its next session
          return session->channel->close({static_cast<Code>(to_status(error).error_code()),
                                          fmt::format("run {}: {}", run, message_of(error))});
        if (!report.pack.empty()) queue_.put_memory(report.pack, report.memory_bytes);
        if (report.took && report.outlived)
          queue_.outlived(report.claimants, *report.took);
        else if (report.took)
          queue_.ran(report.claimants, *report.took);
        const bool probe = report.ended && fleet_.is_probe(run);
        apply(session.get(), report);
        send_parts(report.parts);
        learn(session->hello.name(), measured, probe, report);
        grow_on();
        if (report.ended || report.through) look_at_queue();
      });
}

void Coordinator::refusal(const std::shared_ptr<const Session>& session, const ablate::v1::Refused& refused) {
  struct Result {
    Reported report;
    storage::TrialId trial = 0;
    std::string why{};
  };
  commit(
      [this, session, refused](Database& db) {
        if (!current(*session)) return Result{};
        Result result{.report = store_refusal(db, session->hello.name(), refused, clock_.moment())};
        judge(db, session->hello.name(), false, result.report);
        if (result.report.trial_state != storage::TrialState::kQueued) return result;
        result.trial = storage::TrialStore{db}.run(refused.run()).trial;
        result.why = fmt::format("worker {} refused it: {}", session->hello.name(), refused.reason());
        storage::TrialStore{db}.set_waiting(result.trial, result.why);
        return result;
      },
      [this, session](std::exception_ptr error, const Result& result) {
        if (error) return;  // its lease runs out instead
        const Time now = clock_.steady();
        if (result.trial != 0)
          queue_.refuse(result.trial, session->id, now, now + policy_.refusal, result.why);
        apply(session.get(), result.report);
        follow_holds(result.report);
        grow_on();
        look_at_queue();
      });
}

/// A worker that has nothing of a run any more. What it had may have been of another run by that number, of
/// another results file: then it is told of its part of this one.
void Coordinator::part_ended(const std::shared_ptr<const Session>& session,
                             const ablate::v1::PartEnded& ended) {
  struct Result {
    storage::TrialId trial = 0;  // of a run that is under way
    bool of_another = false;
    std::vector<std::pair<std::string, ablate::v1::Assign>> to_start{};
  };
  commit(
      [this, session, ended](Database& db) {
        const storage::TrialStore trials{db};
        if (!trials.under_way(ended.run())) return Result{};
        const storage::RunRecord run = trials.run(ended.run());
        Result result{.trial = run.trial, .of_another = run.token != ended.token()};
        if (result.of_another)
          for (auto& part : part_assignments(db, ended.run(), policy_))
            if (part.first == session->hello.name()) result.to_start.push_back(std::move(part));
        return result;
      },
      [this, session, ended](std::exception_ptr error, const Result& result) {
        log_info({{"run", ended.run()}, {"worker", session->hello.name()}}, "{}'s part of run {} is over{}{}",
                 session->hello.name(), ended.run(), ended.reason().empty() ? "" : ": ", ended.reason());
        if (!error && result.of_another) return send_parts(result.to_start);
        if (!fleet_.release_part(session->id, ended.run())) return;
        // the trainers tell each other, unless this one never met the others
        if (const auto leader = fleet_.session_with(ended.run());
            leader && !error && result.trial != 0 && ended.failed()) {
          const std::string why =
              fmt::format("worker {}, which takes part in it: {}", session->hello.name(), ended.reason());
          SchedulerMessage message = stop_message(ended.run(), why);
          message.mutable_stop()->set_lost(true);
          leader->channel->send(std::move(message));
          const Time now = clock_.steady();
          queue_.refuse(result.trial, session->id, now, now + policy_.refusal,
                        fmt::format("first tried without {}", why));
        }
        explain_now_ = true;
        look_at_queue();
      });
}

void Coordinator::send_parts(const std::vector<std::pair<std::string, ablate::v1::Assign>>& parts) {
  for (const auto& [worker, assign] : parts) {
    const auto session = fleet_.session_of(worker);
    if (!session) continue;  // it hears of it when it comes back
    SchedulerMessage message;
    *message.mutable_assign() = assign;
    if (mark_) mark_(*message.mutable_assign());
    session->channel->send(std::move(message));
  }
}

/// Of a run that has ended: the other workers' trainers know, and are to be gone soon.
void Coordinator::stop_parts(RunId run) {
  for (const auto& session : fleet_.sessions_with_part_of(run)) {
    SchedulerMessage message = stop_message(run, "the run has ended");
    message.mutable_stop()->set_part(true);
    session->channel->send(std::move(message));
  }
}

void Coordinator::disconnected(const std::shared_ptr<const Session>& session) {
  commit(
      [this, session](Database& db) {
        if (!current(*session)) return false;
        storage::WorkerStore{db}.set_connected(session->hello.name(), false);
        stored_heartbeats_.erase(session->hello.name());
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

void Coordinator::close_sessions() {
  commit([](Database&) { return true; },
         [this](std::exception_ptr, bool) {
           for (const auto& session : fleet_.all())
             session->channel->close({Code::kUnavailable, "the scheduler stops"});
         });
}

/// Its worker hands a run back that was leased ahead, if it has not begun meanwhile.
void Coordinator::call_back(RunId run) {
  SchedulerMessage message = stop_message(run, kRecalled);
  message.mutable_stop()->set_only_waiting(true);
  if (const auto session = fleet_.session_with(run)) session->channel->send(std::move(message));
}

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
  if (report.ended) stop_parts(report.run);
  publish(report.sweeps, report.run);
}

void Coordinator::stop_runs(const std::vector<RunId>& runs, const std::string& reason) {
  for (const RunId run : runs)
    if (const auto session = fleet_.session_with(run)) session->channel->send(stop_message(run, reason));
}

}  // namespace abl::scheduler
