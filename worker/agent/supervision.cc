// SPDX-License-Identifier: Apache-2.0
// The worker's runs, from their assignment to the acknowledgement of their last batch.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/named_path.h"
#include "base/utf8.h"
#include "worker/agent/agent.h"
#include "worker/agent/last_words.h"
#include "worker/agent/leftovers.h"

namespace abl::agent {
using ablate::v1::Assign;
using ablate::v1::RunBatch;
using ablate::v1::RunEnded;
using ablate::v1::WorkerMessage;
namespace {

constexpr std::size_t kFresh = 64;    // and with those that runs have just written; hardly any is large
constexpr std::size_t kTogether = 8;  // spools that are emptied at once, in short runs
constexpr const char* kUnhealthy = "worker unhealthy: ";
constexpr auto kBringing = std::chrono::seconds{20};  // before the end of a run is said
constexpr auto kFetching = std::chrono::minutes{10};  // without a piece of what is fetched

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

}  // namespace

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
    log_warning(
        {{"run", run}},
        "run {} ends before its newest checkpoint was uploaded to the scheduler's depot; the upload goes on",
        run);
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
    why_not = "this worker takes no part in trials over several workers: start it with --address";
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
    return fmt::format("the pushed data set '{}' cannot be read by the user that runs commands (--run-as)",
                       assign.data());
  if (!assign.data().empty() && !options_.runs.data.contains(assign.data()) && !pushed)
    return fmt::format("unknown data set '{0}': start the worker with --data {0}=FOLDER", assign.data());
  for (const std::string& name : assign.weights())
    if (!options_.runs.weights.contains(name))
      return fmt::format("unknown {} '{}': start the worker with {}", kind_of_file(name), name_of_file(name),
                         flag_of_file(name));
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

}  // namespace abl::agent
