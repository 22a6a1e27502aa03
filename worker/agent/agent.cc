// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/utf8.h"
#include "worker/agent/data_look.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
using ablate::v1::Assign;
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerMessage;
namespace {

constexpr std::uint64_t kWindow = 64;  // batches of a run that are sent and not acknowledged
constexpr std::size_t kOutbox = 4;     // batches in memory, of those read from the disk
constexpr std::size_t kFresh = 64;     // and with those that runs have just written; hardly any is large
constexpr std::size_t kTogether = 8;   // spools that are emptied at once, in short runs
constexpr auto kReadAgain = std::chrono::seconds{1};
constexpr const char* kUnhealthy = "worker unhealthy: ";
constexpr auto kReadingData = std::chrono::hours{2};  // of a data set of many files on a slow disk
constexpr auto kBringing = std::chrono::seconds{20};  // before the end of a run is said
constexpr auto kFetching = std::chrono::minutes{10};  // without a piece of what is fetched

std::string random_instance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// The last batch of a run that no program of this worker carries on.
RunBatch last_batch(RunEnded::Status status, const std::string& reason) {
  RunBatch batch;
  batch.mutable_ended()->set_status(status);
  batch.mutable_ended()->set_reason(reason);
  batch.mutable_ended()->set_retryable(true);
  return batch;
}

const char* status_text(const RunEnded& ended) {
  switch (ended.status()) {
    case RunEnded::STATUS_COMPLETED:
      return "completed";
    case RunEnded::STATUS_STOPPED:
      return "stopped";
    case RunEnded::STATUS_LOST:
      return "lost";
    case RunEnded::STATUS_FAILED:
      return "failed";
    default:
      return "ended with an unknown status";
  }
}

void append_last(RunSpool& spool, RunBatch last) {
  try {
    spool.append(last);
  } catch (const Error& error) {
    log_warning("{}; the end of the run is kept in memory", error.what());
    spool.append_in_memory(std::move(last));
  }
}

HealthOptions health_options(const AgentOptions& options) {
  const auto gpus =
      std::ranges::count_if(options.slots, [](const Slot& slot) { return slot.device != "cpu"; });
  return {.folders = {options.spool, options.runs.runs_root},
          .runs = options.runs.runs_root,
          .trainer = options.runs.trainer,
          .gpus = static_cast<int>(gpus),
          .data = options.runs.data,
          .weights = options.runs.weights,
          .first = options.first_probe,
          .longest = options.longest_probe};
}

Fingerprints::Options fingerprint_options(const AgentOptions& options) {
  Fingerprints::Options result{.cache = options.fingerprints, .data = options.runs.data};
  if (!options.runs.trainer.empty() && !options.fingerprints.empty())
    result.compute = [trainer = options.runs.trainer](const std::filesystem::path& place,
                                                      const std::stop_token& stop) {
      return fingerprint_of(trainer, place, kReadingData, stop);
    };
  return result;
}

template <class Message>
void say_health(const Health::State& state, Message& message) {
  message.set_trouble(valid_utf8(state.trouble));
  for (const auto& [name, why] : state.gone_data) (*message.mutable_gone_data())[name] = valid_utf8(why);
  for (const auto& [name, why] : state.gone_weights)
    (*message.mutable_gone_weights())[name] = valid_utf8(why);
  for (const auto& [wanted, why] : state.wrong_weights) {
    auto& wrong = *message.add_wrong_weights();
    wrong.set_name(wanted.name);
    wrong.set_sha256(wanted.sha256);
    wrong.set_reason(valid_utf8(why));
  }
}

}  // namespace

Agent::Agent(AgentOptions options, const Clock& clock)
    : options_{std::move(options)},
      clock_{clock},
      instance_{random_instance()},
      files_{options_.spool},
      session_{options_.scheduler, *this, options_.backoff, options_.access},
      health_{health_options(options_),
              [this] {
                heartbeat_due_ = true;
                session_.wake();
              }},
      parts_{options_.runs,
             clock_,
             crew_,
             {.fault = [this](const Assign& assign, Asked asked) { return fault(assign, asked); },
              .troubled = [this](const Trouble& trouble) { health_.trouble(trouble); },
              .fetch_data = [this](const Assign& assign,
                                   const std::function<bool()>& go_on) { return fetch_data(assign, go_on); },
              .vacated = [this](std::uint32_t run) { vacated(run); },
              .ended =
                  [this](ablate::v1::PartEnded ended) {
                    *state_.lock()->refusals.emplace_back().mutable_part_ended() = std::move(ended);
                    session_.wake();
                  }}},
      fingerprints_{fingerprint_options(options_),
                    [this] {
                      data_due_ = heartbeat_due_ = true;
                      session_.wake();
                    }},
      data_cache_{options_.pushed_data, options_.data_limit},
      depot_{options_.scheduler, options_.access},
      courier_{options_.runs.runs_root, [this](const auto&... load) { return depot_.send(load...); }} {
  auto state = state_.lock();
  for (std::unique_ptr<RunSpool>& found : read_spools(files_)) {
    const std::shared_ptr<RunSpool> spool = std::move(found);
    const std::uint32_t run = spool->run();
    if (const int killed = end_leftovers(spool->program()); killed > 0)
      log_warning({{"run", run}}, "killed {} process{} left over from run {} of an earlier start", killed,
                  killed == 1 ? "" : "es", run);
    if (const auto folder = folder_of_record(spool->program());
        options_.runs.confinement.user && !folder.empty() && std::filesystem::exists(folder))
      close_attempts(folder);
    if (!spool->ended())
      append_last(*spool, last_batch(RunEnded::STATUS_LOST, "its worker was killed and started again"));
    log_info({{"run", run}}, "run {} of an earlier start: {} batches to be sent again", run, spool->last());
    state->runs.emplace(run, Held{.spool = spool, .token = spool->token()});
  }
  clerk_ = std::jthread{[this](const std::stop_token& stop) { work_as_clerk(stop); }};
  session_.start();
}

Agent::~Agent() {
  session_.close();
  std::vector<std::unique_ptr<Run>> runs;  // ended without the lock, which their threads want
  {
    auto state = state_.lock();
    state->stopping = "the worker has stopped";
    runs.swap(state->over);
    for (auto& [id, held] : state->runs)
      if (held.run) runs.push_back(std::move(held.run));
  }
  for (const auto& run : runs) run->kill();
  runs.clear();
  parts_.end_all();  // they fetch data by what is destroyed before them
  clerk_.request_stop();
  clerk_.join();
}

void Agent::tick() {
  std::vector<std::unique_ptr<Run>> over;
  parts_.tidy();
  bool due = false;
  {
    auto state = state_.lock();
    over.swap(state->over);
    const auto now = std::chrono::steady_clock::now();
    due = now - last_heartbeat_ >= state->heartbeat_every / 2;
    if (due) {
      heartbeat_due_ = true;
      last_heartbeat_ = now;
      hand_back_waiting(*state);
      call_clerk(*state);  // a spool that could not be read may be readable again
    }
  }
  courier_.set_connected(session_.connected());
  if (due) reap_orphans();
  if (due) session_.wake();
}

void Agent::stop(const std::string& reason) {
  {
    auto state = state_.lock();
    state->stopping = reason;
    heartbeat_due_ = true;  // says so before any run says that it has stopped
    for (auto& [id, held] : state->runs) stop_run(*state, held, reason);
    for (const auto& [run, assign] : std::exchange(state->waiting_parts, {}))
      say_part_over(*state, run, assign.token(), reason);
  }
  parts_.stop_all(reason);
  session_.wake();
}

bool Agent::busy() {
  if (parts_.busy()) return true;
  auto state = state_.lock();
  return std::any_of(state->runs.begin(), state->runs.end(),
                     [](const auto& entry) { return entry.second.under_way; });
}

bool Agent::settled() {
  auto state = state_.lock();
  return state->runs.empty() && state->leaving.empty() && !parts_.busy();
}

// --- the session's calls ---

ablate::v1::Hello Agent::hello() {
  auto state = state_.lock();
  ablate::v1::Hello hello;
  hello.set_name(options_.name);
  hello.set_instance(instance_);
  hello.set_host(options_.runs.host);
  hello.set_version(options_.version);
  hello.set_result_version(options_.result_version);
  hello.set_allows_commands(options_.allow_commands);
  hello.set_takes_sources(true);
  hello.set_address(options_.runs.address);
  for (const auto& [run, token] : parts_.tokens()) (*hello.mutable_parts())[run] = token;
  for (const auto& [run, assign] : state->waiting_parts) (*hello.mutable_parts())[run] = assign.token();
  hello.set_takes_depot(!options_.pushed_data.empty());
  if (options_.ends) {
    const auto left = std::chrono::floor<Milliseconds>(*options_.ends - std::chrono::steady_clock::now());
    hello.set_time_left_ms(static_cast<std::uint64_t>(std::max(Milliseconds{0}, left).count()));
    const auto in_all = std::chrono::floor<Milliseconds>(*options_.ends - started_);
    hello.set_time_in_all_ms(static_cast<std::uint64_t>(std::max(Milliseconds{0}, in_all).count()));
  }
  hello.set_draining(!state->stopping.empty());
  for (const auto& [name, folder] : options_.runs.data) hello.add_data(name);
  for (const auto& [name, file] : options_.runs.weights) hello.add_weights(name);
  hello.mutable_labels()->insert(options_.labels.begin(), options_.labels.end());
  for (std::uint32_t i = 0; i < options_.slots.size(); ++i) {
    const auto [taken, end] = state->taken.equal_range(i);
    auto& slot = *hello.add_slots();
    slot.set_index(i);
    slot.set_device(options_.slots[i].device);
    slot.set_name(options_.slots[i].name);
    slot.set_threads(static_cast<std::uint32_t>(options_.slots[i].threads));
    slot.set_memory_bytes(options_.slots[i].memory);
    slot.set_run(taken == end ? 0 : taken->second);
    for (auto other = taken; other != end; ++other)
      if (other != taken) slot.add_beside(other->second);
  }
  for (auto& [id, held] : state->runs) {
    if (held.fenced) continue;
    hello.add_runs(id);
    if (!held.token.empty()) hello.mutable_tokens()->insert({id, held.token});
    held.sent = held.acknowledged;
  }
  data_due_ = false;
  say_data(hello);
  say_health(health_.state(), hello);
  ++state->session;
  state->outbox.clear();
  call_clerk(*state);
  heartbeat_due_ = true;
  return hello;
}

std::optional<WorkerMessage> Agent::next() {
  auto state = state_.lock();
  WorkerMessage message;
  if (heartbeat_due_.exchange(false)) {
    auto& heartbeat = *message.mutable_heartbeat();
    for (const auto& [id, held] : state->runs)
      if (!held.fenced) heartbeat.add_runs(id);
    heartbeat.set_draining(!state->stopping.empty());
    if (data_due_.exchange(false)) say_data(heartbeat);
    say_health(health_.state(), heartbeat);
    return message;
  }
  if (!state->refusals.empty()) {
    message = std::move(state->refusals.front());
    state->refusals.erase(state->refusals.begin());
    return message;
  }
  if (state->outbox.empty()) return std::nullopt;
  message = std::move(state->outbox.front());
  state->outbox.pop_front();
  if (std::exchange(state->outbox_was_full, false)) call_clerk(*state);
  return message;
}

void Agent::receive(const SchedulerMessage& message) {
  auto state = state_.lock();
  switch (message.body_case()) {
    case SchedulerMessage::kWelcome:
      if (message.welcome().heartbeat_ms() > 0)
        state->heartbeat_every = Milliseconds{message.welcome().heartbeat_ms()};
      note_store(*state, message.welcome().store_id());
      courier_.set_every(Milliseconds{options_.shared_runs ? 0 : message.welcome().depot_every_ms()});
      break;
    case SchedulerMessage::kAssign:
      if (message.assign().gang().node() > 0)
        assign_part(*state, message.assign());
      else
        assign(*state, message.assign());
      break;
    case SchedulerMessage::kStop:
      if (message.stop().part())
        stop_part(*state, message.stop().run(), message.stop().reason());
      else if (const auto found = state->runs.find(message.stop().run());
               found != state->runs.end() && (found->second.waiting || !message.stop().only_waiting())) {
        log_info({{"run", found->first}}, "stopping run {}: {}", found->first, message.stop().reason());
        stop_run(*state, found->second, message.stop().reason(), message.stop().lost());
      }
      break;
    case SchedulerMessage::kAck:
      acknowledge(*state, message.ack().run(), message.ack().seq());
      break;
    case SchedulerMessage::kFenced:
      if (message.fenced().part()) {
        parts_.kill(message.fenced().run());
        state->waiting_parts.erase(message.fenced().run());
        break;
      }
      fence(*state, message.fenced().run(), message.fenced().reason());
      break;
    case SchedulerMessage::BODY_NOT_SET:
      break;  // of a newer protocol, and not meant for this one
  }
}

/// Which runs of a former results file are dropped the scheduler says, run by run; this says why.
void Agent::note_store(State& state, const std::string& id) {
  if (!state.store_id.empty() && state.store_id != id)
    log_warning("the scheduler has another results file than before: runs of the former one are dropped");
  state.store_id = id;
}

// --- the runs' calls ---

/// Nothing where the run is not to say anything any more.
std::shared_ptr<RunSpool> Agent::spool_of(std::uint32_t run) {
  auto state = state_.lock();
  const auto found = state->runs.find(run);
  return found == state->runs.end() || found->second.fenced ? nullptr : found->second.spool;
}

void Agent::append(std::uint32_t run, const RunBatch& batch) {
  const auto spool = spool_of(run);
  if (!spool) return;
  fail_point(FailPoint::kBeforeSpoolWrite);
  spool->append(batch);
  fail_point(FailPoint::kAfterSpoolWrite);
  if (batch.checkpoints_size() > 0) {
    const std::string token = token_of(run);
    for (const auto& checkpoint : batch.checkpoints())
      courier_.wrote({.run = run, .token = token}, checkpoint);
  }
  if (offer(*state_.lock(), run)) session_.flush();
}

/// Has the run's newest batch sent, which is on disk by now: without the disk where nothing is before it,
/// otherwise by the clerk. Returns: whether there is something to be sent at once.
bool Agent::offer(State& state, std::uint32_t run) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end() || found->second.fenced) return false;
  Held& held = found->second;
  if (state.session > 0 && state.outbox.size() < kFresh && held.sent - held.acknowledged < kWindow)
    if (auto batch = held.spool->take_newest(held.sent)) {
      held.sent = batch->seq();
      *state.outbox.emplace_back().mutable_batch() = *std::move(batch);
      return true;
    }
  call_clerk(state);
  return false;
}

std::uint64_t Agent::backlog(std::uint32_t run) {
  const auto spool = spool_of(run);
  return spool ? spool->bytes() : 0;
}

void Agent::starts(std::uint32_t run, const std::filesystem::path& directory, std::optional<pid_t> group) {
  if (const auto spool = spool_of(run)) spool->keep_program(program_record(directory, group));
}

void Agent::troubled(const Trouble& trouble) { health_.trouble(trouble); }

std::string Agent::fault(const Assign& assign, Asked asked) {
  if (std::string why = health_.vanished(assign); !why.empty()) return why;
  if (asked == Asked::kBefore) return other_data(assign);
  if (std::string why = health_.other_weights(assign.weights_sha256()); !why.empty()) return why;
  Trouble trouble{.reason = health_.cannot_write()};
  if (trouble.reason.empty() && asked == Asked::kFailedFull) {
    trouble.reason = health_.lacks_room();
    trouble.room = 0;
  }
  if (!trouble.reason.empty()) health_.trouble(trouble);
  return trouble.reason;
}

/// A data set that has changed since the scheduler was told what it is. One whose fingerprint is not known is
/// for the trainer to say.
std::string Agent::other_data(const Assign& assign) {
  if (assign.data_fingerprint().empty()) return {};
  const std::string here = fingerprints_.of(assign.data());
  if (here.empty() || here == assign.data_fingerprint()) return {};
  return fmt::format("data '{}' have the fingerprint {} here, and {} is expected", assign.data(), here,
                     assign.data_fingerprint());
}

template <class Message>
void Agent::say_data(Message& message) const {
  const auto known = fingerprints_.all();
  for (const auto& [name, place] : options_.runs.data) {
    auto& data = *message.add_data_places();
    data.set_name(name);
    data.set_place(place.string());
    if (const auto found = known.find(name); found != known.end())
      data.set_fingerprint(valid_utf8(found->second));
  }
}

std::string Agent::token_of(std::uint32_t run) {
  {
    auto state = state_.lock();
    if (const auto found = state->runs.find(run); found != state->runs.end()) return found->second.token;
  }
  const auto parts = parts_.tokens();
  const auto part = parts.find(run);
  return part == parts.end() ? "" : part->second;
}

std::string Agent::fetch(std::uint32_t run, const std::string& sha256, std::uint64_t bytes,
                         const std::filesystem::path& file, const std::function<bool()>& go_on) {
  auto grown = std::chrono::steady_clock::now();
  std::uintmax_t had = 0;
  bool wanted = true;
  const auto goes_on = [&](std::chrono::milliseconds wait) {
    std::this_thread::sleep_for(std::min(wait, Milliseconds{500}));
    const auto now = std::chrono::steady_clock::now();
    std::error_code none;  // yet
    if (const auto has = std::filesystem::file_size(part_of(file), none); !none && has != had)
      had = has, grown = now;
    wanted = go_on();
    return wanted && now - grown < kFetching;
  };
  try {
    if (depot_.fetch({.run = run, .token = token_of(run)}, file, sha256, bytes, goes_on)) return "";
    if (!wanted) return "the run was stopped";
    throw Error{Code::kUnavailable,
                fmt::format("nothing came from the scheduler's depot for {} minutes", kFetching.count())};
  } catch (const Error& error) {
    if (!is_of_the_copy(error.code())) throw;
    return error.what();
  }
}

DataCache::Held Agent::fetch_data(const Assign& assign, const std::function<bool()>& go_on) {
  return data_cache_.get(
      assign.data_sha256(), assign.data_bytes(),
      [&](const std::filesystem::path& file) {
        return fetch(assign.run(), assign.data_sha256(), assign.data_bytes(), file, go_on);
      },
      go_on);
}

void Agent::bring(std::uint32_t run, bool wanted, const std::function<bool()>& go_on) {
  if (!courier_.bring(run, wanted, kBringing, go_on))
    log_warning({{"run", run}},
                "run {} ends before its newest checkpoint is in the scheduler's depot: it follows", run);
}

void Agent::vacated(std::uint32_t run) {
  auto state = state_.lock();
  std::erase_if(state->taken, [&](const auto& entry) { return entry.second == run; });
  start_waiting(*state);
}

void Agent::finished(std::uint32_t run, std::optional<RunBatch> last) {
  vacated(run);  // before the disk has its last words
  if (last)
    log_info({{"run", run}}, "run {} {}{}{}", run, status_text(last->ended()),
             last->ended().reason().empty() ? "" : ": ", last->ended().reason());
  fail_point(FailPoint::kBeforeEnd);
  const bool over = !last || last->ended().status() == RunEnded::STATUS_COMPLETED;
  if (!over && last->checkpoints_size() > 0) {
    const std::string token = token_of(run);
    for (const auto& checkpoint : last->checkpoints())
      courier_.wrote({.run = run, .token = token}, checkpoint);
  }
  courier_.forget(run, !over);
  if (const auto spool = spool_of(run); spool && last) append_last(*spool, *std::move(last));
  fail_point(FailPoint::kAfterEnd);
  {
    auto state = state_.lock();
    const auto held = state->runs.find(run);
    held->second.under_way = false;
    if (held->second.run) state->over.push_back(std::move(held->second.run));
    offer(*state, run);
    settle(*state, held);
  }
  session_.flush();
}

void Agent::refused(std::uint32_t run, const std::string& reason) {
  {
    auto state = state_.lock();
    auto& held = state->runs.at(run);
    if (!held.fenced) refuse(*state, run, reason);
    held.fenced = true;
  }
  finished(run, std::nullopt);
}

// --- assignments, with the lock ---

void Agent::assign(State& state, const Assign& assign) {
  if (state.runs.contains(assign.run())) return;  // said again
  if (const std::string why_not = cannot_run(state, assign); !why_not.empty())
    return refuse(state, assign.run(), why_not);
  state.runs.emplace(assign.run(),
                     Held{.spool = std::make_shared<RunSpool>(files_, assign.run(), assign.token()),
                          .token = assign.token(),
                          .store = state.store_id,
                          .weights = assign.weights_sha256(),
                          .waiting = assign});
  start_waiting(state);
}

/// This worker's slots of another one's run.
void Agent::assign_part(State& state, const Assign& assign) {
  if (parts_.has(assign.run()) || state.waiting_parts.contains(assign.run())) return;  // said again
  std::string why_not = cannot_run(state, assign);
  if (why_not.empty() && options_.runs.address.empty())
    why_not = "this worker takes no part in trials of several: start it with --address";
  if (!why_not.empty()) return say_part_over(state, assign.run(), assign.token(), why_not);
  state.waiting_parts.emplace(assign.run(), assign);
  start_waiting(state);
}

void Agent::start_part(State& state, const Assign& assign) {
  std::vector<Slot> slots;
  for (const std::uint32_t slot : assign.slots()) {
    state.taken.emplace(slot, assign.run());
    slots.push_back(options_.slots[slot]);
  }
  log_info({{"run", assign.run()}, {"trial", assign.trial()}, {"attempt", assign.attempt()}},
           "part {} of {} of run {} starts: trial {}, attempt {}, slot {}", assign.gang().node() + 1,
           assign.gang().nodes(), assign.run(), assign.trial(), assign.attempt(),
           fmt::join(assign.slots(), ", "));
  try {
    parts_.start(assign, std::move(slots), state.store_id);
  } catch (const std::exception& error) {  // no thread or descriptor to be had
    std::erase_if(state.taken, [&](const auto& entry) { return entry.second == assign.run(); });
    health_.trouble({.reason = error.what()});
    say_part_over(state, assign.run(), assign.token(), std::string{kUnhealthy} + error.what());
  }
}

void Agent::stop_part(State& state, std::uint32_t run, const std::string& reason) {
  if (parts_.has(run)) return parts_.stop(run, reason);
  const auto waiting = state.waiting_parts.extract(run);
  say_part_over(state, run, waiting.empty() ? "" : waiting.mapped().token(), reason);
}

/// Of one that was not started, or is over already: its slots are free.
void Agent::say_part_over(State& state, std::uint32_t run, const std::string& token,
                          const std::string& reason) {
  auto& ended = *state.refusals.emplace_back().mutable_part_ended();
  ended.set_run(run);
  ended.set_token(token);
  ended.set_failed(true);
  ended.set_reason(valid_utf8(reason));
  session_.wake();
}

void Agent::refuse(State& state, std::uint32_t run, const std::string& reason) {
  log_warning({{"run", run}}, "run {} refused: {}", run, reason);
  auto& refused = *state.refusals.emplace_back().mutable_refused();
  refused.set_run(run);
  refused.set_reason(valid_utf8(reason));
  session_.wake();
}

/// Another worker may: no refusal here is permanent.
std::string Agent::cannot_run(const State& state, const Assign& assign) const {
  if (!state.stopping.empty()) return state.stopping;
  const Health::State health = health_.state();
  if (!health.trouble.empty()) return kUnhealthy + health.trouble;
  if (const auto gone = health.gone_data.find(assign.data()); gone != health.gone_data.end())
    return gone->second;
  for (const std::string& name : assign.weights())
    if (const auto gone = health.gone_weights.find(name); gone != health.gone_weights.end())
      return gone->second;
  for (const auto& [name, sha256] : assign.weights_sha256())
    if (const auto wrong = health.wrong_weights.find({name, sha256}); wrong != health.wrong_weights.end())
      return wrong->second;
  if (assign.slots().empty()) return "the assignment names no slot";
  const std::set<std::uint32_t> distinct{assign.slots().begin(), assign.slots().end()};
  if (static_cast<int>(distinct.size()) != assign.slots_size() || *distinct.rbegin() >= options_.slots.size())
    return fmt::format("slots {} are not {} of the worker's {}", fmt::join(assign.slots(), ", "),
                       assign.slots_size(), options_.slots.size());
  if (!assign.argv().empty() && !options_.allow_commands)
    return "commands not allowed: start the worker with --allow-commands";
  if (assign.argv().empty() && options_.runs.trainer.empty())
    return "no ablate-trainer: start the worker with --trainer PATH";
  const bool pushed = !assign.data_sha256().empty() && !options_.pushed_data.empty();
  if (pushed && !assign.argv().empty() && options_.runs.confinement.user)
    return fmt::format("data '{}' that were pushed cannot be read by the user of commands (--run-as)",
                       assign.data());
  if (!assign.data().empty() && !options_.runs.data.contains(assign.data()) && !pushed)
    return fmt::format("unknown data set '{0}': start the worker with --data {0}=FOLDER", assign.data());
  for (const std::string& name : assign.weights())
    if (!options_.runs.weights.contains(name))
      return fmt::format("unknown weights '{0}': start the worker with --weights {0}=FILE", name);
  return {};
}

/// In the order of their leases: none takes a slot for which an earlier one waits.
void Agent::start_waiting(State& state) {
  if (!state.stopping.empty()) return;
  hand_back_waiting(state);
  std::set<std::uint32_t> wanted;
  for (auto& [id, held] : state.runs) {
    if (!held.waiting) continue;
    const auto& slots = held.waiting->slots();
    const bool free = std::ranges::none_of(slots, [&, packed = held.waiting->packed()](std::uint32_t slot) {
      return (state.taken.contains(slot) && !packed) || wanted.contains(slot);
    });
    // what one of this number has left, of another results file: the next start could not tell the two apart
    const bool clean =
        std::ranges::none_of(state.leaving, [run = id](const auto& spool) { return spool->run() == run; });
    if (free && clean)
      start(state, id, held);
    else
      wanted.insert(slots.begin(), slots.end());
    if (!clean) call_clerk(state);
  }
  for (auto part = state.waiting_parts.begin(); part != state.waiting_parts.end();) {
    const auto& slots = part->second.slots();
    const bool free = std::ranges::none_of(
        slots, [&](std::uint32_t slot) { return state.taken.contains(slot) || wanted.contains(slot); });
    if (!free) {
      ++part;
      continue;
    }
    const Assign assign = std::move(part->second);
    part = state.waiting_parts.erase(part);
    start_part(state, assign);
  }
}

void Agent::start(State& state, std::uint32_t run, Held& held) {
  const Assign assign = *std::exchange(held.waiting, std::nullopt);
  std::vector<Slot> slots;
  for (const std::uint32_t slot : assign.slots()) {
    state.taken.emplace(slot, run);
    slots.push_back(options_.slots[slot]);
  }
  log_info({{"run", run}, {"trial", assign.trial()}, {"attempt", assign.attempt()}},
           "run {} starts: trial {}, attempt {}, slot {}", run, assign.trial(), assign.attempt(),
           fmt::join(assign.slots(), ", "));
  RunOwner& owner = *this;
  try {
    held.run =
        std::make_unique<Run>(assign, std::move(slots), options_.runs, owner, clock_, crew_, held.store);
    held.under_way = true;
  } catch (const std::exception& error) {  // no thread or descriptor to be had: the slot is free again
    log_warning({{"run", run}}, "run {} cannot start: {}", run, error.what());
    std::erase_if(state.taken, [run](const auto& entry) { return entry.second == run; });
    held.last_words = last_batch(RunEnded::STATUS_LOST, std::string{kUnhealthy} + error.what());
    held.last_words->mutable_ended()->set_worker_trouble(true);
    health_.trouble({.reason = error.what()});
    call_clerk(state);
  }
}

/// Those that would meet what is wrong by now, for another worker: none is to pay for having waited here.
void Agent::hand_back_waiting(State& state) {
  if (health_.state().well()) return;
  std::erase_if(state.runs, [&](const auto& entry) {
    const auto& [run, held] = entry;
    if (!held.waiting) return false;
    const std::string why_not = cannot_run(state, *held.waiting);
    if (why_not.empty()) return false;
    refuse(state, run, why_not);
    return true;
  });
}

/// `lost`: it cannot go on, by no fault of its own.
void Agent::stop_run(State& state, Held& held, const std::string& reason, bool lost) {
  if (held.run) held.run->stop(reason, lost);
  if (!std::exchange(held.waiting, std::nullopt)) return;
  held.last_words = last_batch(RunEnded::STATUS_STOPPED, reason);
  held.last_words->mutable_ended()->set_asked(true);
  call_clerk(state);
}

void Agent::fence(State& state, std::uint32_t run, const std::string& reason) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end() || found->second.fenced) return;
  Held& held = found->second;
  log_info({{"run", run}}, "run {} is dropped: {}", run, reason);
  std::erase_if(state.outbox, [run](const WorkerMessage& message) { return message.batch().run() == run; });
  held.fenced = true;
  // perhaps for its weights: a program may do well with a file that is not the wanted one
  if (!held.weights.empty()) {
    state.doubted.push_back(held.weights);
    call_clerk(state);
  }
  if (held.run) held.run->kill();  // none while this worker ends
  settle(state, found);
}

void Agent::acknowledge(State& state, std::uint32_t run, std::uint64_t seq) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end() || found->second.fenced) return;
  Held& held = found->second;
  held.acknowledged = std::max(held.acknowledged, std::min(seq, held.spool->last()));
  held.sent = std::max(held.sent, held.acknowledged);  // it had them of an earlier start
  if (!settle(state, found)) call_clerk(state);        // a part of its spool may go, or more of it be sent
}

/// Lets a run go of which nothing is left to be done or said. Returns: whether it did. The clerk is not
/// called for each, where more come.
bool Agent::settle(State& state, Runs::iterator found) {
  const Held& held = found->second;
  if (held.under_way) return false;
  const bool said = held.spool->ended() && held.acknowledged >= held.spool->last();
  if (!held.fenced && !said) return false;
  state.leaving.push_back(held.spool);
  state.runs.erase(found);
  if (state.leaving.size() >= kTogether || state.runs.empty() || !state.stopping.empty()) call_clerk(state);
  return true;
}

// --- the clerk ---

void Agent::call_clerk(State& state) {
  state.clerk_due = true;
  clerk_wake_.notify_all();
}

void Agent::work_as_clerk(const std::stop_token& stop) {
  auto state = state_.lock();
  while (!stop.stop_requested()) {
    clerk_wake_.wait(state.mutex(), stop, [&] { return state->clerk_due; });
    state->clerk_due = false;
    while (!stop.stop_requested() && do_one_thing(state)) {
    }
  }
  while (delete_spool(state)) {
  }
}

/// Each of these gives the lock back while the disk works. Returns: whether there was something to do.
bool Agent::do_one_thing(Lock& state) {
  return delete_spool(state) || write_last_words(state) || drop_acknowledged(state) || read_batch(state) ||
         look_at_weights(state);
}

bool Agent::delete_spool(Lock& state) {
  if (state->leaving.empty()) return false;
  const auto spool = state->leaving.front();
  state.mutex().unlock();
  fail_point(FailPoint::kBeforeSpoolDelete);
  spool->remove();
  fail_point(FailPoint::kAfterSpoolDelete);
  state.mutex().lock();
  state->leaving.pop_front();
  const auto next = state->runs.find(spool->run());  // another results file's
  if (next != state->runs.end() && next->second.waiting) start_waiting(*state);
  return true;
}

bool Agent::write_last_words(Lock& state) {
  const auto held = std::find_if(state->runs.begin(), state->runs.end(),
                                 [](const auto& entry) { return entry.second.last_words.has_value(); });
  if (held == state->runs.end()) return false;
  const std::uint32_t run = held->first;
  const auto spool = held->second.spool;
  const RunBatch words = *std::exchange(held->second.last_words, std::nullopt);
  state.mutex().unlock();
  append_last(*spool, words);
  state.mutex().lock();
  if (offer(*state, run)) session_.wake();
  return true;
}

bool Agent::drop_acknowledged(Lock& state) {
  for (const auto& [run, held] : state->runs) {
    if (held.fenced || held.acknowledged <= held.spool->acknowledged()) continue;
    const auto spool = held.spool;
    const std::uint64_t seq = held.acknowledged;
    state.mutex().unlock();
    spool->acknowledge(seq);
    state.mutex().lock();
    return true;
  }
  return false;
}

/// One run after the other has its turn, so that none with much to say delays the others.
bool Agent::read_batch(Lock& state) {
  if (state->session == 0) return false;
  if (state->outbox.size() >= kOutbox) {
    state->outbox_was_full = true;
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  const auto has_more = [&](const auto& entry) {
    const Held& held = entry.second;
    return !held.fenced && held.sent < held.spool->last() && held.unread_until <= now &&
           held.sent - held.acknowledged < kWindow;  // the scheduler stores one at a time
  };
  const auto turn = state->runs.upper_bound(state->last_read);
  auto found = std::find_if(turn, state->runs.end(), has_more);
  if (found == state->runs.end()) found = std::find_if(state->runs.begin(), turn, has_more);
  if (found == state->runs.end() || !has_more(*found)) return false;

  const std::uint32_t run = state->last_read = found->first;
  const std::uint64_t session = state->session, sent = found->second.sent;
  const auto spool = found->second.spool;
  std::optional<RunBatch> batch;
  std::optional<Error> failed;
  state.mutex().unlock();
  try {
    batch = spool->after(sent);
  } catch (const Error& error) {
    failed = error;
    if (error.code() != Code::kDataLoss) health_.trouble({.reason = error.what()});
  }
  state.mutex().lock();
  const auto still = state->runs.find(run);
  if (still == state->runs.end() || still->second.fenced) return true;
  if (failed && failed->code() == Code::kDataLoss) {
    fence(*state, run, failed->what());  // nothing right can be said of it any more: its lease runs out
  } else if (failed) {
    still->second.unread_until = now + kReadAgain;
  } else if (batch && session == state->session && batch->seq() > still->second.sent) {
    still->second.sent = std::max(still->second.sent, batch->seq());
    *state->outbox.emplace_back().mutable_batch() = std::move(*batch);
    session_.wake();
  }
  return true;
}

/// Last, for it may read gigabytes.
bool Agent::look_at_weights(Lock& state) {
  if (state->doubted.empty()) return false;
  const WantedDigests digests = std::move(state->doubted.front());
  state->doubted.pop_front();
  state.mutex().unlock();
  health_.other_weights(digests);
  state.mutex().lock();
  return true;
}

}  // namespace abl::agent
