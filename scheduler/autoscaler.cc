// SPDX-License-Identifier: Apache-2.0
#include "scheduler/autoscaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "access/certificates.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest_name.h"
#include "config/document/result_version.h"
#include "launchers/kubernetes.h"
#include "launchers/slurm.h"
#include "launchers/ssh.h"
#include "protocol/embedded_data.h"
#include "scheduler/placement.h"
#include "views/convert.h"

namespace abl::scheduler {
namespace {

using launchers::Decision;
using launchers::Pilot;
using launchers::PilotStanding;
using launchers::PilotState;

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kListAtLeast{60};  // also where nothing waits
constexpr std::size_t kMostEvents = 200;
constexpr std::size_t kStoreIdLetters = 12;                   // in names of jobs
constexpr std::size_t kKeptFolders = 20, kKeptFailures = 10;  // of the ended pilots of a queue
constexpr std::size_t kMostCharged = 1000;                    // of machines that never come back
constexpr std::chrono::seconds kLastWords{30};  // after a pilot's end its worker's token is good for so long

/// The worker that a pilot of this queue is to be.
WorkerState worker_of(const launchers::QueueConfig& queue) {
  WorkerState worker{.name = queue.name,
                     .host = {},
                     .labels = queue.labels,
                     .result_version = config::newest_result_version(),
                     .allows_commands = queue.allow_commands,
                     .takes_sources = true};
  worker.labels["queue"] = queue.name;
  for (const auto& [name, place] : queue.data) worker.data.names.insert(name);
  worker.data.names.insert(protocol::kEmbeddedData.begin(), protocol::kEmbeddedData.end());
  for (const auto& [name, place] : queue.weights) worker.weights.names.insert(name);
  for (int i = 0; i < queue.slots; ++i)
    worker.slots.push_back({.index = static_cast<std::uint32_t>(i), .cuda = queue.gpus > 0});
  return worker;
}

}  // namespace

std::vector<std::unique_ptr<launchers::Launcher>> make_launchers(const launchers::FleetConfig& config,
                                                                 const std::string& store_id,
                                                                 const std::filesystem::path& store,
                                                                 const Clock& clock) {
  std::vector<std::unique_ptr<launchers::Launcher>> made;
  std::map<launchers::LauncherKind, std::vector<launchers::QueueConfig>> of_kind;
  for (const launchers::QueueConfig& queue : config.queues) of_kind[queue.kind].push_back(queue);
  for (const auto& [kind, queues] : of_kind) switch (kind) {
      case launchers::LauncherKind::kSlurm:
        made.push_back(std::make_unique<launchers::SlurmLauncher>(
            launchers::SlurmOptions{.store_id = store_id.substr(0, kStoreIdLetters),
                                    .scheduler = config.scheduler,
                                    .script = store.string() + ".slurm.sh"},
            queues));
        break;
      case launchers::LauncherKind::kKubernetes:
        made.push_back(std::make_unique<launchers::KubernetesLauncher>(
            launchers::KubernetesOptions::of(config, store_id.substr(0, kStoreIdLetters))));
        break;
      case launchers::LauncherKind::kSsh:
        made.push_back(std::make_unique<launchers::SshLauncher>(
            launchers::SshOptions{.store_id = store_id.substr(0, kStoreIdLetters),
                                  .scheduler = config.scheduler,
                                  .sockets = store.parent_path() / ".ssh"},
            queues, clock));
        break;
    }
  return made;
}

void check(const FleetOptions& options) {
  const launchers::FleetConfig& config = options.config;
  if (!options.tls && !config.ca.empty())
    throw Error{Code::kInvalidArgument,
                fmt::format("fleet file: ca: {}: this scheduler has no TLS; start it with --tls-certificate "
                            "and --tls-key, or leave ca out",
                            config.ca)};
  if (options.tls && config.ca.empty() && !config.scheduler.starts_with("unix:"))
    throw Error{Code::kInvalidArgument,
                "fleet file: ca: missing; workers need the authority that has signed this scheduler's "
                "certificate: ca.crt of 'ablate init-fleet', or system"};
  if (!config.ca.empty() && config.ca != launchers::kSystem) access::read_authorities(config.ca);
}

Autoscaler::Autoscaler(FleetOptions options, const std::filesystem::path& store,
                       const Coordinator& coordinator, AccessControl& access, const Clock& clock,
                       std::vector<std::unique_ptr<launchers::Launcher>> launchers)
    : options_{std::move(options)},
      file_{store.string() + ".fleet.json"},
      coordinator_{coordinator},
      access_{access},
      clock_{clock},
      launchers_{std::move(launchers)} {
  auto state = state_.lock();
  std::map<launchers::LauncherKind, launchers::Launcher*> of_kind;
  for (const launchers::QueueConfig& queue : options_.config.queues) {  // in the order of make_launchers
    state->queues.push_back({.standing = {.config = queue, .pilots = {}, .paused = {}}});
    of_kind[queue.kind] = nullptr;
  }
  auto next = launchers_.begin();
  for (auto& [kind, launcher] : of_kind) launcher = (next++)->get();
  for (Queue& queue : state->queues) queue.launcher = of_kind.at(queue.standing.config.kind);
  load(*state);
}

Autoscaler::~Autoscaler() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void Autoscaler::start() {
  thread_ = std::jthread{[this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        look(stop);
      } catch (const std::exception& error) {
        log_error("the fleet cannot be looked at: {}", error.what());
      }
      auto state = state_.lock();
      wake_.wait_for(state.mutex(), stop, kLookEvery, [] { return false; });
    }
  }};
}

/// What happened and why, for the log and for `ablate fleet`.
void Autoscaler::say(State& state, const std::string& queue, const std::string& text) {
  log_info({{"queue", queue}}, "fleet: {}{}{}", queue, queue.empty() ? "" : ": ", text);
  state.events.push_back({clock_.now(), queue, text});
  if (state.events.size() > kMostEvents) state.events.pop_front();
}

void Autoscaler::look(const std::stop_token& stop) {
  const Figures::Needs needs = *coordinator_.figures().needs.lock();
  if (needs.at == Time{}) return;  // the queue is not read yet
  const Time now = clock_.steady();
  bool live = false, wanted = !needs.waiting.empty();
  {
    auto state = state_.lock();
    for (const Queue& queue : state->queues) {
      live = live || !queue.standing.pilots.empty() ||
             std::ranges::any_of(queue.passes, [](const auto& pass) { return pass.second.gone.has_value(); });
      wanted = wanted || queue.standing.config.min_workers > 0;
    }
  }
  const Milliseconds every = live || wanted ? options_.list_every : Milliseconds{kListAtLeast};
  if (last_list_ && now - *last_list_ < every) return;
  last_list_ = now;

  std::set<std::string> connected, busy;
  for (const auto& worker : needs.workers) {
    connected.insert(worker.name);
    if (worker.busy) busy.insert(worker.name);
  }
  std::set<const launchers::Launcher*> unknown;
  for (const auto& launcher : launchers_) {
    std::vector<Pilot> pilots;
    std::string trouble;
    try {
      pilots = launcher->list(stop);
    } catch (const Error& error) {
      trouble = error.what();
    }
    if (stop.stop_requested()) return;
    auto state = state_.lock();
    std::string& known = state->trouble[launcher.get()];
    if (known.empty() != trouble.empty())
      say(*state, "",
          trouble.empty() ? "pilots can be listed again"
                          : "cannot list pilots, keeping what was known of them: " + trouble);
    known = trouble;
    if (!trouble.empty()) {
      unknown.insert(launcher.get());
      continue;
    }
    for (const launchers::News& news : launcher->news()) say(*state, news.queue, news.text);
    for (Queue& queue : state->queues) {
      if (queue.launcher != launcher.get()) continue;
      merge(*state, queue, pilots, now);
      queue.standing.room = launcher->room(queue.standing.config);
    }
  }

  launchers::Decisions decisions;
  {
    auto state = state_.lock();
    std::vector<launchers::QueueStanding> standings;
    for (Queue& queue : state->queues) {
      note_workers(queue, connected, busy, now);
      double seconds = queue.ended_gpu_seconds;
      for (const auto& [id, ran] : queue.seconds)
        seconds += static_cast<double>(ran) * queue.standing.config.gpus;
      queue.standing.gpu_hours = seconds / 3600;
      standings.push_back(queue.standing);
    }
    decisions = launchers::decide(standings, waiting_for(*state, needs), now);
    for (std::size_t i = 0; i < state->queues.size(); ++i) state->queues[i].why = decisions.why.at(i);
    state->listed = true;
  }
  for (const Decision& decision : decisions.all) {
    if (stop.stop_requested()) break;
    if (!unknown.contains(state_.lock()->queues.at(decision.queue).launcher)) carry_out(decision, now, stop);
  }
  for (std::size_t i = 0; i < options_.config.queues.size() && !stop.stop_requested(); ++i)
    if (!unknown.contains(state_.lock()->queues.at(i).launcher)) clean_up(i, connected, stop);
  end_strays(connected);
  auto state = state_.lock();
  if (std::exchange(state->save, false)) save(*state);
}

namespace {

/// That a worker has to have: of a trial that takes fewer too, the fewest. Those that only several workers
/// together have are not counted: pilots take no part in such trials.
int gpus_of_one(const Demand& demand) {
  const auto& split = demand.split;
  if (split.most_nodes > 0) return demand.gpus / split.most_nodes;
  return split.least_gpus > 0 ? split.least_gpus : demand.gpus;
}

}  // namespace

/// What waits, with the queues whose workers could run it.
std::vector<launchers::WaitingTrials> Autoscaler::waiting_for(const State& state,
                                                              const Figures::Needs& needs) const {
  std::vector<WorkerState> workers;
  for (const Queue& queue : state.queues) workers.push_back(worker_of(queue.standing.config));
  std::vector<launchers::WaitingTrials> all;
  for (const WorkQueue::Waiting& waiting : needs.waiting) {
    launchers::WaitingTrials& kind = all.emplace_back(launchers::WaitingTrials{
        .trials = waiting.trials,
        .gpus = gpus_of_one(waiting.demand),
        .takes = std::chrono::ceil<std::chrono::seconds>(with_reserve(waiting.takes))});
    for (std::size_t i = 0; i < workers.size(); ++i)
      if (could_take(waiting.demand, workers[i])) kind.queues.insert(i);
  }
  return all;
}

/// How a queue's pilots are, by what its launcher says.
void Autoscaler::merge(State& state, Queue& queue, const std::vector<Pilot>& listed, Time now) {
  const std::string& name = queue.standing.config.name;
  std::map<std::string, PilotStanding> before;
  for (PilotStanding& pilot : queue.standing.pilots) before.emplace(pilot.pilot.id, std::move(pilot));
  queue.standing.pilots.clear();
  for (const Pilot& pilot : listed) {
    if (pilot.queue != name) continue;
    const auto known = before.find(pilot.id);
    const bool is_new = known == before.end();
    const auto charged = queue.charged.find(pilot.id);
    const std::int64_t before_it = charged == queue.charged.end() ? 0 : charged->second;
    const auto since_then = std::max<std::int64_t>(0, pilot.ran.count() - before_it);
    if (pilot.state == PilotState::kEnded) {
      const auto counted = queue.seconds.find(pilot.id);
      const bool is_told = is_new && counted == queue.seconds.end();
      if (is_told && (charged == queue.charged.end() || pilot.perhaps)) continue;
      const std::int64_t ran = std::max(since_then, counted == queue.seconds.end() ? 0 : counted->second);
      if (!pilot.perhaps)
        queue.charged.erase(pilot.id);
      else if (charged != queue.charged.end() || queue.charged.size() < kMostCharged)
        queue.charged[pilot.id] = before_it + ran;
      queue.ended_gpu_seconds += static_cast<double>(ran) * queue.standing.config.gpus;
      queue.seconds.erase(pilot.id);
      const bool was_there = queue.connected.erase(pilot.id) > 0;
      const bool told = !is_new && known->second.leaving;
      if (!is_new) before.erase(known);
      state.save = true;
      std::deque<std::string>& kept = pilot.failed ? queue.failures : queue.ended;
      kept.push_back(pilot.worker());
      for (const std::size_t most = pilot.failed ? kKeptFailures : kKeptFolders; kept.size() > most;) {
        queue.old.push_back(std::move(kept.front()));
        kept.pop_front();
      }
      const std::string end = fmt::format("pilot {} has ended: {} after {} s", pilot.id, pilot.said, ran);
      say(state, name, end);
      if (pilot.failed && !was_there && !told && !is_new)
        failed(state, queue, end + ", before its worker was heard of", now);
      continue;
    }
    PilotStanding standing =
        is_new ? PilotStanding{.since = now, .idle_since = now} : std::move(known->second);
    if (is_new && pilot.state == PilotState::kWaiting)
      for (const auto& [id, pass] : queue.passes)  // waits since it was submitted
        if (pass.pilot == pilot.id) standing.since = now - (clock_.now() - pass.made);
    if (is_new)
      say(state, name,
          fmt::format("pilot {} is there, of an earlier start: {}", pilot.id, name_of(pilot.state)));
    else if (standing.pilot.state != pilot.state)
      say(state, name,
          pilot.state == PilotState::kRunning
              ? fmt::format("pilot {} runs on {}", pilot.id, pilot.machine)
              : fmt::format("pilot {} waits again: {}", pilot.id, pilot.said));
    if (standing.pilot.state != pilot.state) standing.since = now;
    standing.pilot = pilot;
    if (!is_new) before.erase(known);
    if (pilot.state == PilotState::kRunning) {
      std::int64_t& seconds = queue.seconds[pilot.id];
      state.save = state.save || since_then - seconds >= 60 || seconds == 0;
      seconds = std::max(seconds, since_then);
    }
    queue.standing.pilots.push_back(std::move(standing));
  }
  // just submitted, and not in the list yet; others were listed once, and the launcher says how they end
  for (auto& [id, pilot] : before)
    if (now - pilot.since < kListAtLeast)
      queue.standing.pilots.push_back(std::move(pilot));
    else
      say(state, name, fmt::format("pilot {} was submitted but is not listed", id));
}

/// How a queue's workers are, by what the coordinator says.
void Autoscaler::note_workers(Queue& queue, const std::set<std::string>& connected,
                              const std::set<std::string>& busy, Time now) {
  for (PilotStanding& pilot : queue.standing.pilots) {
    const std::string worker = pilot.pilot.worker();
    const bool is_connected = connected.contains(worker), is_busy = busy.contains(worker);
    if (is_connected && queue.connected.insert(pilot.pilot.id).second) queue.submissions.succeeded();
    if ((is_connected && !pilot.connected) || (pilot.busy && !is_busy)) pilot.idle_since = now;
    if (pilot.connected && !is_connected) pilot.since = now;  // the time to come back begins
    pilot.connected = is_connected;
    pilot.busy = is_busy;
  }
}

/// A pilot that came to nothing; after several the queue pauses.
void Autoscaler::failed(State& state, Queue& queue, const std::string& why, Time now) {
  if (!queue.submissions.failed(now) || !queue.standing.paused.empty()) return;
  queue.standing.paused =
      fmt::format("{} pilots in a row came to nothing, the last: {}", queue.submissions.failures(), why);
  state.save = true;
  say(state, queue.standing.config.name,
      fmt::format("the queue pauses until 'ablate fleet resume {}': {}", queue.standing.config.name,
                  queue.standing.paused));
}

void Autoscaler::carry_out(const Decision& decision, Time now, const std::stop_token& stop) {
  if (options_.dry_run) {
    auto state = state_.lock();
    Queue& queue = state->queues.at(decision.queue);
    const std::string would =
        decision.kind == Decision::Kind::kSubmit
            ? fmt::format("would submit {}: {}",
                          launchers::counted(static_cast<std::size_t>(decision.pilots), "pilot"),
                          decision.reason)
            : fmt::format("would end {}: {}", launchers::names_of(decision.which), decision.reason);
    if (std::exchange(queue.would, would) != would) say(*state, queue.standing.config.name, would);
    return;
  }
  switch (decision.kind) {
    case Decision::Kind::kSubmit:
      return submit(decision, now, stop);
    case Decision::Kind::kCancel:
      return cancel(decision, now, stop);
  }
}

void Autoscaler::submit(const Decision& decision, Time now, const std::stop_token& stop) {
  launchers::Launcher* launcher = nullptr;
  launchers::QueueConfig config;
  {
    auto state = state_.lock();
    Queue& queue = state->queues.at(decision.queue);
    if (!queue.submissions.may_submit(now)) return;
    launcher = queue.launcher;
    config = queue.standing.config;
  }
  std::vector<Pilot> submitted;
  std::optional<Error> refusal;
  for (int i = 0; i < decision.pilots && !stop.stop_requested() && !refusal; ++i) {
    std::optional<launchers::Pass> pass;
    try {
      pass = new_pass(decision.queue);
      submitted.push_back({.id = launcher->submit(config, pass, stop), .queue = config.name});
    } catch (const Error& error) {
      refusal = error;
    }
    if (!pass) continue;
    auto state = state_.lock();
    Admission& admission = state->queues.at(decision.queue).passes[pass->id];
    if (!refusal)
      admission.pilot = submitted.back().id;
    else if (refusal->code() != Code::kUnavailable)  // otherwise there may be a pilot that has it
      admission.expires = clock_.now();
    state->save = true;
  }
  auto state = state_.lock();
  Queue& queue = state->queues.at(decision.queue);
  for (const Pilot& pilot : submitted)
    queue.standing.pilots.push_back({.pilot = pilot, .since = now, .idle_since = now});
  if (!submitted.empty()) {
    queue.submissions.answered();
    queue.standing.last_submission = now;
    say(*state, config.name,
        fmt::format("submitted {} ({}): {}", launchers::counted(submitted.size(), "pilot"),
                    launchers::names_of(submitted), decision.reason));
  }
  if (!refusal || stop.stop_requested()) return;
  say(*state, config.name, fmt::format("a submission failed: {}", refusal->what()));
  if (refusal->code() == Code::kUnavailable)
    queue.submissions.unanswered(now);
  else
    failed(*state, queue, refusal->what(), now);
}

/// Nothing where workers need none. It is written down before it is handed over, so that it ends also where
/// this program does not hear what became of it.
std::optional<launchers::Pass> Autoscaler::new_pass(std::size_t number) {
  const launchers::FleetConfig& config = options_.config;
  if (config.ca.empty()) return std::nullopt;
  const launchers::QueueConfig& queue = config.queues.at(number);
  try {
    launchers::Pass pass;
    if (config.ca != launchers::kSystem) pass.authorities = access::read_authorities(config.ca);
    const Time now = clock_.now(), expires = now + queue.start_deadline + launchers::kTimeToConnect;
    const access::Token token = access_.make_join_token("a pilot of queue " + queue.name, expires);
    pass.id = token.id();
    pass.token = token.text();
    auto state = state_.lock();
    state->queues.at(number).passes[pass.id] = {.made = now, .expires = expires};
    save(*state);
    return pass;
  } catch (const Error& error) {  // not the launcher's fault
    throw Error{Code::kUnavailable, fmt::format("no token for its worker: {}", error.what())};
  }
}

/// Ends the tokens of pilots that have ended, and removes what nobody needs any more.
void Autoscaler::clean_up(std::size_t number, const std::set<std::string>& connected,
                          const std::stop_token& stop) {
  launchers::Leftovers leftovers;
  std::vector<std::string> over;
  launchers::Launcher* launcher = nullptr;
  std::vector<std::string> unanswered;
  {
    auto state = state_.lock();
    for (const auto& [id, pass] : state->queues.at(number).passes)
      if (pass.pilot.empty()) unanswered.push_back(id);
  }
  std::map<std::string, std::string> joined;  // pass -> the worker that came with it
  for (const std::string& id : unanswered)
    if (const auto worker = access_.worker_of(id)) joined[id] = *worker;
  {
    auto state = state_.lock();
    Queue& queue = state->queues.at(number);
    launcher = queue.launcher;
    const bool knows_all = launcher->knows_all(queue.standing.config);
    leftovers.workers = std::exchange(queue.old, {});
    const Time now = clock_.steady();
    for (auto& [id, pass] : queue.passes) {
      const auto worker = joined.find(id);
      const auto pilot = std::ranges::find_if(queue.standing.pilots, [&](const PilotStanding& standing) {
        if (!pass.pilot.empty()) return standing.pilot.id == pass.pilot;
        return standing.pilot.id == id ||  // some launchers call it so
               (worker != joined.end() && standing.pilot.worker() == worker->second);
      });
      if (pilot != queue.standing.pilots.end() && pass.pilot.empty()) {
        pass.pilot = pilot->pilot.id;  // the submission that was not answered was heard
        state->save = true;
      }
      if (pilot != queue.standing.pilots.end()) {
        pass.gone.reset();
        if (pilot->connected && !std::exchange(pass.used, true)) leftovers.passes.push_back(id);
        continue;
      }
      const bool has_joined = worker != joined.end();
      if (pass.pilot.empty() && !has_joined && clock_.now() < pass.expires) continue;
      if (!knows_all) {  // its pilot may be on a machine that was not heard of yet
        pass.gone.reset();
        continue;
      }
      if (!pass.gone) pass.gone = now;
      const std::string name =
          has_joined ? worker->second : Pilot{.id = pass.pilot, .queue = queue.standing.config.name}.worker();
      if (now - *pass.gone < kLastWords || connected.contains(name)) continue;
      over.push_back(id);
      leftovers.passes.push_back(id);
    }
  }
  if (leftovers.empty()) return;
  std::string trouble;
  std::erase_if(over, [&](const std::string& id) {
    try {
      access_.end_join(id);
      return false;
    } catch (const Error& error) {  // the next look tries again
      trouble = fmt::format("cannot revoke token {}: {}", id, error.what());
      return true;
    }
  });
  bool removed = true;
  try {
    launcher->remove(options_.config.queues.at(number), leftovers, stop);
  } catch (const Error& error) {  // likewise
    trouble = error.what();
    removed = false;
  }
  auto state = state_.lock();
  Queue& queue = state->queues.at(number);
  if (queue.trouble != trouble && !trouble.empty()) say(*state, queue.standing.config.name, trouble);
  queue.trouble = trouble;
  if (removed) {
    for (const std::string& id : over) queue.passes.erase(id);
  } else {
    queue.old.insert(queue.old.begin(), leftovers.workers.begin(), leftovers.workers.end());
    for (const std::string& id : leftovers.passes) queue.passes.at(id).used = false;
  }
  state->save = state->save || !over.empty() || !leftovers.workers.empty();
}

/// Of queues that the fleet file does not name any more. What their pilots are nobody asks: a token ends when
/// its worker has been away for long.
void Autoscaler::end_strays(const std::set<std::string>& connected) {
  std::vector<Stray> strays = state_.lock()->strays;
  if (strays.empty()) return;
  const Time now = clock_.steady();
  std::set<std::string> over;
  for (Stray& stray : strays) {
    const auto worker = access_.worker_of(stray.id);
    if (worker ? connected.contains(*worker) : clock_.now() < stray.admission.expires) {
      stray.admission.gone.reset();
      continue;
    }
    if (!stray.admission.gone) stray.admission.gone = now;
    if (now - *stray.admission.gone < launchers::kTimeToConnect) continue;
    try {
      access_.end_join(stray.id);
      over.insert(stray.id);
    } catch (const Error& error) {  // the next look tries again
      log_warning("fleet: cannot revoke token {}: {}", stray.id, error.what());
    }
  }
  std::erase_if(strays, [&](const Stray& stray) { return over.contains(stray.id); });
  auto state = state_.lock();
  state->save = state->save || !over.empty();
  state->strays = std::move(strays);
}

void Autoscaler::cancel(const Decision& decision, Time now, const std::stop_token& stop) {
  launchers::Launcher* launcher = state_.lock()->queues.at(decision.queue).launcher;
  std::string trouble;
  try {
    launcher->cancel(decision.which, stop);
  } catch (const Error& error) {
    trouble = error.what();
  }
  auto state = state_.lock();
  Queue& queue = state->queues.at(decision.queue);
  const std::string& name = queue.standing.config.name;
  for (PilotStanding& pilot : queue.standing.pilots)
    if (std::ranges::find(decision.which, pilot.pilot.id, &Pilot::id) != decision.which.end() &&
        trouble.empty())
      pilot.leaving = now;
  const std::string ids = launchers::names_of(decision.which);
  const char* plural = decision.which.size() == 1 ? "" : "s";
  if (!trouble.empty())
    return say(*state, name, fmt::format("pilot{} {} cannot be ended: {}", plural, ids, trouble));
  say(*state, name, fmt::format("told pilot{} {} to end: {}", plural, ids, decision.reason));
  if (decision.fruitless) failed(*state, queue, decision.reason, now);
}

// --- people ---

Autoscaler::Queue& Autoscaler::queue_named(State& state, const std::string& name) {
  std::vector<std::string> names;
  for (Queue& queue : state.queues) {
    if (queue.standing.config.name == name) return queue;
    names.push_back(queue.standing.config.name);
  }
  throw Error{Code::kNotFound,
              fmt::format("no queue '{}'; expected {}{}", name, any_of(names), did_you_mean(name, names))};
}

void Autoscaler::pause(const std::string& name, const std::string& reason) {
  auto state = state_.lock();
  Queue& queue = queue_named(*state, name);
  queue.standing.paused = reason.empty() ? "by hand" : reason;
  say(*state, name, "paused: " + queue.standing.paused);
  save(*state);
}

void Autoscaler::resume(const std::string& name) {
  auto state = state_.lock();
  Queue& queue = queue_named(*state, name);
  queue.submissions.succeeded();
  if (std::exchange(queue.standing.paused, {}).empty()) return;
  say(*state, name, "resumed");
  save(*state);
}

ablate::v1::FleetStatus Autoscaler::status() {
  ablate::v1::FleetStatus status;
  auto state = state_.lock();
  status.set_dry_run(options_.dry_run);
  for (const auto& [launcher, trouble] : state->trouble)
    if (!trouble.empty()) status.set_trouble(trouble);
  for (const Queue& queue : state->queues) {
    const launchers::QueueConfig& config = queue.standing.config;
    ablate::v1::FleetQueue& shown = *status.add_queues();
    shown.set_name(config.name);
    shown.set_launcher(std::string{name_of(config.kind)});
    shown.set_min_workers(static_cast<std::uint32_t>(config.min_workers));
    shown.set_max_workers(static_cast<std::uint32_t>(config.max_workers));
    shown.set_backlog(static_cast<std::uint32_t>(config.backlog));
    shown.set_time_limit_s(static_cast<std::uint64_t>(config.time_limit.count()));
    shown.set_paused(queue.standing.paused);
    shown.set_why(state->listed ? queue.why : "it was not looked at yet");
    shown.set_gpu_hours(queue.standing.gpu_hours);
    if (config.max_gpu_hours) shown.set_max_gpu_hours(*config.max_gpu_hours);
    for (const PilotStanding& pilot : queue.standing.pilots) {
      ablate::v1::FleetPilot& one = *shown.add_pilots();
      one.set_id(pilot.pilot.id);
      one.set_state(std::string{name_of(pilot.pilot.state)});
      one.set_worker(pilot.pilot.worker());
      one.set_machine(pilot.pilot.machine);
      one.set_said(pilot.pilot.said);
      one.set_ran_s(static_cast<std::uint64_t>(pilot.pilot.ran.count()));
      one.set_connected(pilot.connected);
      one.set_busy(pilot.busy);
      one.set_leaving(pilot.leaving.has_value());
    }
  }
  for (const Event& event : state->events) {
    ablate::v1::FleetEvent& shown = *status.add_events();
    *shown.mutable_at() = views::to_proto(event.at);
    shown.set_queue(event.queue);
    shown.set_text(event.text);
  }
  return status;
}

}  // namespace abl::scheduler
