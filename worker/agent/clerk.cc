// SPDX-License-Identifier: Apache-2.0
// What the worker's disk has to do beside its runs: one thread, the clerk, does one thing after the other.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/fail_point.h"
#include "worker/agent/agent.h"
#include "worker/agent/last_words.h"

namespace abl::agent {
using ablate::v1::RunBatch;
namespace {

constexpr std::size_t kOutbox = 4;  // batches in memory, of those read from the disk
constexpr auto kReadAgain = std::chrono::seconds{1};

}  // namespace

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
