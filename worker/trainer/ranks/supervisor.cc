// SPDX-License-Identifier: Apache-2.0
#include "worker/trainer/ranks/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <memory>
#include <utility>
#include <variant>

#include "base/error.h"
#include "worker/trainer/ranks/rank_group.h"

namespace abl::ranks {
namespace {

constexpr std::size_t kLongestLine = 256 << 10;  // as workers take them; what is longer becomes several
constexpr int kMostPieces = 16;                  // at one look, so that one that never stops holds up nobody

/// Takes whole lines; `begun` is what is kept of one that has not ended.
void for_each_line(std::string& begun, std::string_view piece,
                   const std::function<void(const std::string&)>& take) {
  while (!piece.empty()) {
    const auto end = piece.find('\n');
    const bool whole = end != std::string_view::npos;
    begun += piece.substr(0, end);
    if (whole || begun.size() >= kLongestLine) take(std::exchange(begun, {}));
    piece.remove_prefix(whole ? end + 1 : piece.size());
  }
}

struct Repeat {
  protocol::Events& events;
  void operator()(const protocol::Start& start) const { events.start(start); }
  void operator()(const protocol::Metric& metric) const { events.metric(metric.step, metric.values); }
  void operator()(const protocol::Log& log) const { events.log(log.level, log.text); }
  void operator()(const protocol::Checkpoint& checkpoint) const {
    if (checkpoint.best.empty())
      events.checkpoint(checkpoint.step, checkpoint.path, checkpoint.sha256);
    else
      events.best_checkpoint(checkpoint.step, checkpoint.path, checkpoint.sha256, checkpoint.best);
  }
  void operator()(const protocol::Trained&) const { events.trained(); }
  void operator()(const protocol::Probe& probe) const { events.probe(probe.step, probe.path); }
  void operator()(const protocol::Rendezvous&) const {}  // the trainer's that starts the ranks
  void operator()(const protocol::End&) const {}         // the run's, which follows from those of all ranks
};

std::optional<protocol::Event> event_of(const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  try {
    return object.is_object() ? protocol::parse_event(object) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void RankOutput::read_stdout(std::string_view piece) {
  for_each_line(out_, piece, [this](const std::string& line) { take_event(line); });
}

void RankOutput::read_stderr(std::string_view piece) {
  for_each_line(err_, piece, [this](const std::string& line) { take_log(line); });
}

void RankOutput::take_event(const std::string& line) {
  const auto event = event_of(line);
  if (!event) {
    if (events_) take_log(line);  // of a library
    return;
  }
  if (const auto* end = std::get_if<protocol::End>(&*event))
    end_ = *end;
  else if (events_)
    std::visit(Repeat{*events_}, *event);
}

void RankOutput::take_log(const std::string& line) {
  std::cerr << fmt::format("rank {}: {}\n", rank_, line);
  last_.add(line + "\n");
}

std::string RankOutput::last_words() const {
  LastLines words = last_;
  words.add(err_);
  return words.text();
}

namespace {

void close_end(int& end) {
  if (end >= 0) ::close(std::exchange(end, -1));
}

/// Both ends; the reading one never waits.
std::array<int, 2> new_pipe(int rank) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw system_error(fmt::format("cannot make a pipe for rank {}", rank), errno);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return ends;
}

}  // namespace

RankProcess::RankProcess(int rank, const std::vector<std::string>& argv, protocol::Events* events)
    : rank_{rank}, output_{rank, events}, ends_{-1, -1} {
  std::array<int, 2> out = new_pipe(rank), err{-1, -1};
  ends_[0] = out[0];
  try {
    err = new_pipe(rank);
    ends_[1] = err[0];
    ChildOptions options;
    options.argv = argv;
    options.stdout_fd = out[1], options.stderr_fd = err[1];
    options.grace = std::chrono::milliseconds{0};  // whoever has time to ask has asked before
    child_.emplace(options);
  } catch (...) {
    for (int* end : {&ends_[0], &ends_[1], &out[1], &err[1]}) close_end(*end);
    throw;
  }
  close_end(out[1]), close_end(err[1]);
}

RankProcess::~RankProcess() {
  child_.reset();
  for (int& end : ends_) close_end(end);
}

void RankProcess::read(int& end, void (RankOutput::*take)(std::string_view)) {
  std::array<char, 65536> buffer;
  for (int pieces = 0; end >= 0 && pieces < kMostPieces; ++pieces) {
    const ssize_t got = ::read(end, buffer.data(), buffer.size());
    if (got > 0) {
      (output_.*take)({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) close_end(end);
      return;
    }
  }
}

void RankProcess::look() {
  if (!exit_) exit_ = child_->poll();  // before the pipes are read: what it wrote last is in them then
  read(ends_[0], &RankOutput::read_stdout);
  read(ends_[1], &RankOutput::read_stderr);
}

void RankProcess::ask_to_stop() {
  if (!exit_) child_->terminate();
}

void RankProcess::kill() {
  if (exit_) return;
  killed_ = true;
  child_->kill();
}

bool RankProcess::failed() const {
  const auto& end = output_.said_end();
  if (end && end->status == protocol::End::Status::kFailed) return true;
  return exit_ && (!exit_->ok() || !end);
}

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Ranks = std::vector<std::unique_ptr<RankProcess>>;

constexpr auto kLook = 50ms;
constexpr auto kLastWords = 1s;           // for the others to say what they met, once one has failed
constexpr auto kLeave = 10s;              // for those to go that have said their end
constexpr auto kLastWordsElsewhere = 5s;  // for another machine to say what it met

void wait_for_any(const Ranks& ranks) {
  std::vector<pollfd> watched;
  for (const auto& rank : ranks)
    for (const int end : rank->ends()) watched.push_back({end, POLLIN, 0});
  ::poll(watched.data(), watched.size(), static_cast<int>(kLook / 1ms));
}

bool has_ended(const std::unique_ptr<RankProcess>& rank) { return rank->exit().has_value(); }

/// A rank that another one's end brought down.
bool is_consequence(const RankProcess& rank) {
  const auto& end = rank.output().said_end();
  return rank.killed() || (end && end->reason.starts_with(kLostRanks));
}

/// The rank that failed first: one that a signal ended, before one that gave a reason of its own, before one
/// that only noticed.
const RankProcess& culprit(const Ranks& ranks) {
  const auto score = [](const std::unique_ptr<RankProcess>& rank) {
    if (!rank->failed()) return 4;
    if (is_consequence(*rank)) return 3;
    return rank->exit() && rank->exit()->signal != 0 ? 0 : rank->output().said_end() ? 1 : 2;
  };
  return **std::ranges::min_element(ranks, {}, score);
}

std::string reason_of(const RankProcess& rank) {
  const auto& end = rank.output().said_end();
  if (end && !end->reason.empty()) return end->reason;
  std::string reason = rank.exit() ? rank.exit()->describe() : "no answer";
  if (rank.exit() && rank.exit()->signal == SIGKILL) reason += "; perhaps out of memory";
  if (const auto words = rank.output().last_words(); !words.empty()) reason += "; last output: " + words;
  return reason;
}

/// `count`: of all machines.
RunEnd failure(const Ranks& ranks, int count, bool asked) {
  const auto& first = culprit(ranks);
  const auto& end = first.output().said_end();
  if (asked && first.exit() && first.exit()->signal == SIGTERM)  // before it could heed it
    return {.end = {.status = protocol::End::Status::kStopped,
                    .reason = "stopped before the first step",
                    .fault = {}},
            .exit_code = kExitOk};
  const bool all_alike = std::ranges::all_of(ranks, [&](const auto& rank) {
    return rank->output().said_end() && rank->output().said_end()->reason == reason_of(first);
  });
  const std::string who = all_alike ? "" : fmt::format("rank {} of {}: ", first.rank(), count);
  const bool has_code = first.exit() && first.exit()->signal == 0 && first.exit()->code != 0;
  return {.end = {.status = protocol::End::Status::kFailed,
                  .reason = who + reason_of(first),
                  .retryable = !end || end->retryable,
                  .fault = end ? end->fault : std::nullopt,
                  .failure = end ? end->failure : std::nullopt},
          .exit_code = has_code ? first.exit()->code : kExitFailed};
}

RunEnd lost(const std::string& why) {
  return {.end = {.status = protocol::End::Status::kFailed,
                  .reason = why,
                  .fault = {},
                  .failure = protocol::FailureClass::kInfrastructure},
          .exit_code = kExitFailed};
}

/// Whether the ranks here only met what happened elsewhere.
bool is_consequence(const Ranks& ranks) {
  return std::ranges::all_of(ranks,
                             [](const auto& rank) { return !rank->failed() || is_consequence(*rank); });
}

/// The end of the whole run, by the first machine: what its own ranks met, or else those of another one.
RunEnd end_of_all(const Ranks& ranks, RunEnd own, Nodes& nodes, bool failed, const std::string& trouble) {
  if (!failed) {
    nodes.await_ends(kLeave);  // the store is theirs too, until they have gone
    return own;
  }
  nodes.say_end({.end = own.end, .consequence = is_consequence(ranks)});  // so that the others go as well
  if (!is_consequence(ranks)) {
    nodes.await_ends(kLastWords);
    return own;
  }
  nodes.await_ends(kLastWordsElsewhere);
  if (auto elsewhere = nodes.culprit()) {
    // that machine's own worker knows of a fault of its machine
    if (elsewhere->end.fault) elsewhere->end.failure = protocol::FailureClass::kInfrastructure;
    elsewhere->end.fault.reset();
    return {.end = elsewhere->end, .exit_code = kExitFailed};
  }
  if (!trouble.empty()) return lost(trouble);
  if (const std::string who = nodes.unheard(); !who.empty())
    return lost(fmt::format("the connection to the ranks on {} is lost", who));
  return lost(own.end.reason);
}

}  // namespace

RunEnd supervise_ranks(int count, const RankCommand& command, protocol::Events& events,
                       const std::atomic<bool>& stop, Nodes* nodes) {
  const int begin = nodes ? nodes->place().first_rank : 0, all = nodes ? nodes->place().ranks : count;
  const bool leads = !nodes || nodes->first();
  Ranks ranks;
  for (int rank = begin; rank < begin + count; ++rank)
    ranks.push_back(std::make_unique<RankProcess>(rank, command(rank), rank == 0 ? &events : nullptr));
  const auto& first = *ranks[0];
  std::optional<Clock::time_point> deadline;
  bool asked = false, failed = false;
  std::string asked_by, trouble;
  while (!std::ranges::all_of(ranks, has_ended)) {
    wait_for_any(ranks);
    for (const auto& rank : ranks) rank->look();
    if (nodes && leads && asked_by.empty() && !stop) asked_by = nodes->asked_by();
    if (const bool wanted = stop || !asked_by.empty(); wanted && !asked) {
      asked = true;
      leads ? ranks[0]->ask_to_stop() : nodes->ask_to_stop();
    }
    const bool first_is_done = first.exit() && !first.failed();
    if (nodes && trouble.empty() && !first_is_done) trouble = nodes->trouble();
    const bool met =
        std::ranges::any_of(ranks, &RankProcess::failed, [](const auto& it) -> auto& { return *it; });
    failed = failed || (!first_is_done && (met || !trouble.empty()));
    if (!deadline && (failed || first_is_done)) deadline = Clock::now() + kLastWords;
    for (const auto& rank : ranks)
      if (deadline && Clock::now() >= *deadline + (rank->output().said_end() ? kLeave : 0s)) rank->kill();
  }
  for (const auto& rank : ranks) rank->look();
  // what another machine met may have come to be known as the ranks here were ending as they should
  if (nodes && failed && std::ranges::none_of(ranks, [](const auto& rank) { return rank->failed(); }))
    failed = false;
  RunEnd end = failed ? failure(ranks, all, asked && leads)
                      : RunEnd{.end = *first.output().said_end(), .exit_code = kExitOk};
  if (!nodes) return end;
  if (!leads) {
    nodes->say_end({.end = end.end, .consequence = failed && is_consequence(ranks)});
    if (failed && is_consequence(ranks)) {
      if (trouble.empty()) trouble = nodes->trouble();
      return lost(trouble.empty() ? end.end.reason : trouble);
    }
    return end;
  }
  const bool stopped = end.end.status == protocol::End::Status::kStopped;
  end = end_of_all(ranks, std::move(end), *nodes, failed && !stopped, trouble);
  if (end.end.status == protocol::End::Status::kStopped && !stop && !asked_by.empty())
    return lost(fmt::format("{} stops: its worker was asked to", asked_by));
  return end;
}

}  // namespace abl::ranks
