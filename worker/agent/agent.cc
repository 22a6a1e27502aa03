// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "worker/agent/data_look.h"
#include "worker/agent/last_words.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
using ablate::v1::Assign;
using ablate::v1::RunEnded;
using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerMessage;
namespace {

constexpr auto kReadingData = std::chrono::hours{2};  // of a data set of many files on a slow disk

std::string random_instance() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
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
      courier_{options_.runs.runs_root, [this](const auto&... load) { return depot_.send(load...); }},
      sampler_{{.add =
                    [this](std::uint32_t run, const std::string& token, ablate::v1::ResourceSample sample) {
                      resources_.add(run, token, std::move(sample), std::chrono::steady_clock::now());
                    },
                .end = [this](std::uint32_t run, const std::string& token) { resources_.end(run, token); }},
               options_.sample_every} {
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
  resources_.begin_session(std::chrono::steady_clock::now());
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
    for (auto& resources : resources_.take(std::chrono::steady_clock::now()))
      *heartbeat.add_resources() = std::move(resources);
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

}  // namespace abl::agent
