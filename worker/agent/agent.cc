// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace abl::agent {
using ablate::v1::Assign;
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using ablate::v1::SchedulerMessage;
using ablate::v1::WorkerMessage;
namespace {

constexpr std::uint64_t kWindow = 64;  // batches of a run that are sent and not acknowledged

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
    default:
      return "failed";
  }
}

void append_last(RunSpool& spool, RunBatch last, const std::string& token) {
  last.set_token(token);
  try {
    spool.append(last);
  } catch (const Error& error) {
    log_warning("{}; the end of the run is kept in memory", error.what());
    spool.append_in_memory(last);
  }
}

}  // namespace

Agent::Agent(AgentOptions options, const Clock& clock)
    : options_{std::move(options)},
      clock_{clock},
      instance_{random_instance()},
      session_{options_.scheduler, *this, options_.backoff} {
  auto state = state_.lock();
  for (const std::uint32_t run : spooled_runs(options_.spool)) {
    RunSpool spool{options_.spool / std::to_string(run), run};
    const auto first = spool.after(0);
    const std::string token = first ? first->token() : std::string{};
    if (!spool.ended())
      append_last(spool, last_batch(RunEnded::STATUS_LOST, "its worker was killed and started again"), token);
    log_info("run {} of an earlier start: {} batches to be sent again", run, spool.last());
    state->runs.emplace(run, Held{.spool = std::move(spool), .token = token});
  }
  session_.start();
}

Agent::~Agent() {
  session_.close();
  std::vector<std::unique_ptr<Run>> runs;  // ended without the lock, which their threads want
  auto state = state_.lock();
  state->stopping = "the worker has stopped";
  runs.swap(state->over);
  for (auto& [id, held] : state->runs)
    if (held.run) runs.push_back(std::move(held.run));
  state.mutex().unlock();
  for (const auto& run : runs) run->kill();
}

void Agent::tick() {
  std::vector<std::unique_ptr<Run>> over;
  bool due = false;
  {
    auto state = state_.lock();
    over.swap(state->over);
    const auto now = std::chrono::steady_clock::now();
    due = now - last_heartbeat_ >= state->heartbeat_every / 2;
    if (due) {
      state->heartbeat_due = true;
      last_heartbeat_ = now;
    }
  }
  if (due) session_.wake();
}

void Agent::stop(const std::string& reason) {
  {
    auto state = state_.lock();
    state->stopping = reason;
    state->heartbeat_due = true;  // says so before any run says that it has stopped
    for (auto& [id, held] : state->runs) stop_run(held, reason);
  }
  session_.wake();
}

bool Agent::busy() {
  auto state = state_.lock();
  return std::any_of(state->runs.begin(), state->runs.end(),
                     [](const auto& entry) { return entry.second.under_way; });
}

bool Agent::settled() { return state_.lock()->runs.empty(); }

ablate::v1::Hello Agent::hello() {
  auto state = state_.lock();
  ablate::v1::Hello hello;
  hello.set_name(options_.name);
  hello.set_instance(instance_);
  hello.set_host(options_.runs.host);
  hello.set_version(options_.version);
  hello.set_result_version(options_.result_version);
  hello.set_allows_commands(options_.allow_commands);
  hello.set_draining(!state->stopping.empty());
  for (const auto& [name, folder] : options_.runs.data) hello.add_data(name);
  for (const auto& [name, file] : options_.runs.weights) hello.add_weights(name);
  for (std::uint32_t i = 0; i < options_.slots.size(); ++i) {
    const auto taken = state->taken.find(i);
    auto& slot = *hello.add_slots();
    slot.set_index(i);
    slot.set_device(options_.slots[i].device);
    slot.set_name(options_.slots[i].name);
    slot.set_threads(static_cast<std::uint32_t>(options_.slots[i].threads));
    slot.set_run(taken == state->taken.end() ? 0 : taken->second);
  }
  for (auto& [id, held] : state->runs) {
    if (held.fenced) continue;
    hello.add_runs(id);
    if (!held.token.empty()) hello.mutable_tokens()->insert({id, held.token});
    held.sent = held.spool.acknowledged();
  }
  state->heartbeat_due = true;
  return hello;
}

std::optional<WorkerMessage> Agent::next() {
  auto state = state_.lock();
  WorkerMessage message;
  if (std::exchange(state->heartbeat_due, false)) {
    auto& heartbeat = *message.mutable_heartbeat();
    for (const auto& [id, held] : state->runs)
      if (!held.fenced) heartbeat.add_runs(id);
    heartbeat.set_draining(!state->stopping.empty());
    return message;
  }
  if (!state->refusals.empty()) {
    message = std::move(state->refusals.front());
    state->refusals.erase(state->refusals.begin());
    return message;
  }
  for (auto& [id, held] : state->runs) {
    if (held.fenced || held.sent >= held.spool.last()) continue;
    if (held.sent - held.spool.acknowledged() >= kWindow) continue;  // the scheduler stores one at a time
    try {
      if (auto batch = held.spool.after(held.sent)) {
        held.sent = batch->seq();
        *message.mutable_batch() = std::move(*batch);
        return message;
      }
    } catch (const Error& error) {
      fence(*state, id, error.what());  // nothing right can be said of it any more: its lease runs out
      return std::nullopt;
    }
  }
  return std::nullopt;
}

void Agent::receive(const SchedulerMessage& message) {
  {
    auto state = state_.lock();
    switch (message.body_case()) {
      case SchedulerMessage::kWelcome:
        if (message.welcome().heartbeat_ms() > 0)
          state->heartbeat_every = Milliseconds{message.welcome().heartbeat_ms()};
        note_store(*state, message.welcome().store_id());
        break;
      case SchedulerMessage::kAssign:
        assign(*state, message.assign());
        break;
      case SchedulerMessage::kStop:
        if (const auto found = state->runs.find(message.stop().run()); found != state->runs.end()) {
          log_info("run {} is to stop: {}", found->first, message.stop().reason());
          stop_run(found->second, message.stop().reason());
        }
        break;
      case SchedulerMessage::kAck:
        acknowledge(*state, message.ack().run(), message.ack().seq());
        break;
      case SchedulerMessage::kFenced:
        fence(*state, message.fenced().run(), message.fenced().reason());
        break;
      default:
        break;  // of a newer protocol, and not meant for this one
    }
  }
  session_.wake();
}

/// Which runs of a former results file are dropped the scheduler says, run by run; this says why.
void Agent::note_store(State& state, const std::string& id) {
  if (!state.store_id.empty() && state.store_id != id)
    log_warning("the scheduler has another results file than before: runs of the former one are dropped");
  state.store_id = id;
}

void Agent::append(std::uint32_t run, const RunBatch& batch) {
  {
    auto state = state_.lock();
    const auto found = state->runs.find(run);
    if (found == state->runs.end() || found->second.fenced) return;
    RunBatch mine = batch;
    mine.set_token(found->second.token);
    found->second.spool.append(std::move(mine));
  }
  session_.wake();
}

void Agent::finished(std::uint32_t run, std::optional<RunBatch> last) {
  {
    auto state = state_.lock();
    std::erase_if(state->taken, [&](const auto& entry) { return entry.second == run; });
    Held& held = state->runs.at(run);
    held.under_way = false;
    if (held.run) state->over.push_back(std::move(held.run));
    if (last)
      log_info("run {} {}{}{}", run, status_text(last->ended()), last->ended().reason().empty() ? "" : ": ",
               last->ended().reason());
    if (held.fenced) {
      state->runs.erase(run);
    } else if (last) {
      append_last(held.spool, *last, held.token);
    }
    start_waiting(*state);
  }
  session_.wake();
}

void Agent::assign(State& state, const Assign& assign) {
  if (state.runs.contains(assign.run())) return;  // said again
  std::string why_not = cannot_run(state, assign);
  try {
    if (why_not.empty()) {
      RunSpool spool{options_.spool / std::to_string(assign.run()), assign.run()};
      state.runs.emplace(assign.run(),
                         Held{.spool = std::move(spool), .token = assign.token(), .waiting = assign});
      return start_waiting(state);
    }
  } catch (const Error& error) {
    why_not = error.what();
  }
  log_warning("run {} refused: {}", assign.run(), why_not);
  auto& refused = *state.refusals.emplace_back().mutable_refused();
  refused.set_run(assign.run());
  refused.set_reason(why_not);
}

/// Another worker may: no refusal here is permanent.
std::string Agent::cannot_run(const State& state, const Assign& assign) const {
  if (!state.stopping.empty()) return state.stopping;
  if (assign.slots().empty()) return "the assignment names no slot";
  const std::set<std::uint32_t> distinct{assign.slots().begin(), assign.slots().end()};
  if (static_cast<int>(distinct.size()) != assign.slots_size() || *distinct.rbegin() >= options_.slots.size())
    return fmt::format("slots {} are not {} of the worker's {}", fmt::join(assign.slots(), ", "),
                       assign.slots_size(), options_.slots.size());
  if (!assign.argv().empty() && !options_.allow_commands)
    return "it runs no commands: start the worker with --allow-commands";
  if (assign.argv().empty() && options_.runs.trainer.empty())
    return "it has no ablate-trainer: start the worker with --trainer PATH";
  if (!assign.data().empty() && !options_.runs.data.contains(assign.data()))
    return fmt::format("it has no data '{0}': start the worker with --data {0}=FOLDER", assign.data());
  for (const std::string& name : assign.weights())
    if (!options_.runs.weights.contains(name))
      return fmt::format("it has no weights '{0}': start the worker with --weights {0}=FILE", name);
  return {};
}

void Agent::start_waiting(State& state) {
  if (!state.stopping.empty()) return;
  for (auto& [id, held] : state.runs) {
    if (!held.waiting) continue;
    const auto& indices = held.waiting->slots();
    if (std::any_of(indices.begin(), indices.end(),
                    [&](std::uint32_t slot) { return state.taken.contains(slot); }))
      continue;
    const Assign assign = *std::exchange(held.waiting, std::nullopt);
    std::vector<Slot> slots;
    for (const std::uint32_t slot : assign.slots()) {
      state.taken[slot] = id;
      slots.push_back(options_.slots[slot]);
    }
    log_info("run {} starts: trial {}, attempt {}, slot {}", id, assign.trial(), assign.attempt(),
             fmt::join(assign.slots(), ", "));
    RunOwner& owner = *this;
    try {
      held.run = std::make_unique<Run>(assign, std::move(slots), options_.runs, owner, clock_);
      held.under_way = true;
    } catch (
        const std::exception& error) {  // no thread or descriptor to be had: the run ends, the slot is free
      log_warning("run {} cannot start: {}", id, error.what());
      std::erase_if(state.taken, [run = id](const auto& entry) { return entry.second == run; });
      append_last(held.spool, last_batch(RunEnded::STATUS_FAILED, error.what()), held.token);
    }
  }
}

void Agent::stop_run(Held& held, const std::string& reason) {
  if (held.run) held.run->stop(reason);
  if (std::exchange(held.waiting, std::nullopt))
    append_last(held.spool, last_batch(RunEnded::STATUS_STOPPED, reason), held.token);
}

void Agent::fence(State& state, std::uint32_t run, const std::string& reason) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end() || found->second.fenced) return;
  Held& held = found->second;
  log_info("run {} is dropped: {}", run, reason);
  held.spool.remove();
  if (held.under_way) {
    held.fenced = true;
    held.run->kill();
  } else {
    state.runs.erase(found);
  }
}

void Agent::acknowledge(State& state, std::uint32_t run, std::uint64_t seq) {
  const auto found = state.runs.find(run);
  if (found == state.runs.end() || found->second.fenced) return;
  RunSpool& spool = found->second.spool;
  spool.acknowledge(seq);
  found->second.sent = std::max(found->second.sent, spool.acknowledged());  // it had them of an earlier start
  if (!spool.ended() || spool.acknowledged() < spool.last()) return;
  spool.remove();
  state.runs.erase(found);
}

}  // namespace abl::agent
